"""Plain NumPy twins of the compiled kernels: same names, same parameters, the plainest formula that says what each must do."""

import numpy as np


def _products(stack, first, coordinates, mode):
    """Product of every observed entry's factor rows over the modes other than `mode` (-1: over all), (n, R)."""
    rows = [stack[first[k] + coordinates[k]] for k in range(len(first)) if k != mode]
    return np.prod(rows, axis=0)


def _full(upper):
    """Symmetric matrix from its upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


def segment_products(stack, first, coordinates, entries, begins, ends, mode, precisions, targets, grams, products):
    c = _products(stack, first, coordinates, mode)
    upper = np.triu_indices(stack.shape[1])
    for s in range(len(begins)):
        chosen = entries[begins[s]:ends[s]]
        gram = np.einsum("n,na,nb->ab", precisions[chosen], c[chosen], c[chosen])
        grams[s][upper] = gram[upper]
        products[s] = (precisions[chosen] * targets[chosen]) @ c[chosen]


def contract_rows(grams, products, rows, factor, gram, product):
    u = factor[rows]
    gram[:] = np.sum([np.outer(line, line) * _full(g) for line, g in zip(u, grams)], axis=0)
    product[:] = np.sum(u * products[:len(rows)], axis=0)


def draw_rows(grams, products, bounds, weights, diagonals, shifts, noise, rows):
    for i in range(len(bounds) - 1):
        mine = slice(bounds[i], bounds[i + 1])
        precision = np.diag(weights) @ _full(grams[mine].sum(axis=0)) @ np.diag(weights) + diagonals[i] * np.eye(len(weights))
        right = weights * products[mine].sum(axis=0) + shifts[i]
        try:
            lower = np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:
            rows[i] = np.nan
            continue
        rows[i] = np.linalg.solve(precision, right) + np.linalg.solve(lower.T, noise[i])


def cp_at(stack, first, coordinates, weights, out):
    out[:] = _products(stack, first, coordinates, -1) @ weights


def draw_labels(residuals, log_weights, means, variances, uniforms, labels):
    density = np.exp(-0.5 * (residuals[:, None] - means) ** 2 / variances) / np.sqrt(variances)
    probability = np.exp(log_weights) * density
    running = np.cumsum(probability / probability.sum(axis=1, keepdims=True), axis=1)
    labels[:] = np.sum(running[:, :-1] <= uniforms[:, None], axis=1)


def expected_labels(residuals, log_weights, means, variances, log_densities, precisions, shifts):
    normal = np.exp(-0.5 * (residuals[:, None] - means) ** 2 / variances) / np.sqrt(2.0 * np.pi * variances)
    density = np.exp(log_weights) * normal
    log_densities[:] = np.log(density.sum(axis=1))
    share = density / density.sum(axis=1, keepdims=True)
    precisions[:] = share @ (1.0 / variances)
    shifts[:] = share @ (means / variances) / precisions


def draw_weights_one_by_one(stack, first, coordinates, precision, variances, noise, residuals, weights):
    b = _products(stack, first, coordinates, -1)
    for r in range(len(weights)):
        others = residuals + weights[r] * b[:, r]  # y - e - the other components
        posterior = 1.0 / variances[r] + precision * np.sum(b[:, r] ** 2)
        mean = precision * np.sum(b[:, r] * others) / posterior
        weights[r] = mean + noise[r] / np.sqrt(posterior)
        residuals[:] = others - weights[r] * b[:, r]


def draw_rows_one_by_one(stack, first, coordinates, entries, starts, mode, rows, precision, weights, diagonals, shifts, noise,
                         residuals):
    c = _products(stack, first, coordinates, mode) * weights
    for i, row in enumerate(rows):
        mine = entries[starts[row]:starts[row + 1]]
        u = stack[first[mode] + row]
        for r in range(len(weights)):
            others = residuals[mine] + u[r] * c[mine, r]
            posterior = precision * np.sum(c[mine, r] ** 2) + diagonals[i]
            mean = (precision * np.sum(c[mine, r] * others) + shifts[i, r]) / posterior
            u[r] = mean + noise[i, r] / np.sqrt(posterior)
            residuals[mine] = others - u[r] * c[mine, r]


def factorise(matrix, order, height, extra):
    view = matrix[: order * height * 16].reshape(order, height, 16)
    for lane in range(16):
        lower = np.linalg.cholesky(np.tril(view[:, :order, lane].T) + np.tril(view[:, :order, lane].T, -1).T)
        view[:, order : order + extra, lane] = np.linalg.solve(lower, view[:, order : order + extra, lane])
        below = np.tril_indices(order)
        view[:, :order, lane].T[below] = (lower + np.diag(1 / np.diag(lower) - np.diag(lower)))[below]


def substitute_back(matrix, order, height):
    view = matrix[: (order + 1) * height * 16].reshape(order + 1, height, 16)
    for lane in range(16):
        lower = np.tril(view[:order, :order, lane].T)
        lower[np.diag_indices(order)] **= -1
        view[order, :order, lane] = np.linalg.solve(lower.T, view[:order, order, lane])


def invert(matrix, order, height):
    """After `factorise` with the identity as right sides 1 to order: minus the inverses, (16, order, order), beside the flat array."""
    view = matrix[: order * height * 16].reshape(order, height, 16)
    roots = view[:, order + 1 : 2 * order + 1].transpose(2, 0, 1)
    return -roots.transpose(0, 2, 1) @ roots


def _patches(image, positions, size):
    """Patches at flat positions, (..., C size^2)."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), (1, 2))
    top, left = np.divmod(positions, image.shape[2])
    return np.moveaxis(windows[:, top, left], 0, -3).reshape(*np.shape(positions), -1)


def match(image, positions, size, window, contrast, groups):
    height, width = image.shape[1:]
    for g, position in enumerate(positions):
        top, left = divmod(int(position), width)
        rows = np.arange(max(0, top - window), min(height - size, top + window) + 1)
        columns = np.arange(max(0, left - window), min(width - size, left + window) + 1)
        candidates = (rows[:, None] * width + columns).ravel()
        difference = _patches(image, candidates, size).astype(float) - _patches(image, position, size).astype(float)
        means = difference.reshape(len(candidates), len(image), -1).mean(axis=2)
        distance = np.sum(difference**2, axis=1) - contrast * size**2 * np.sum(means**2, axis=1)
        distance[candidates == position] = -np.inf
        groups[g] = candidates[np.argsort(distance, kind="stable")[: groups.shape[1]]]


def estimate(image, data, observed, groups, size, taper, rest, noise, uncertain, estimates, variances):
    for g, group in enumerate(groups):
        now = _patches(image, group, size).astype(float)
        mean = now.mean(axis=0)
        covariance = np.cov(now.T, bias=True) * taper + rest * np.eye(now.shape[1])
        pairs = list(zip(_patches(data, group, size), _patches(observed, group, size)))
        if uncertain:
            covariance = covariance + taper * np.mean([_left_open(covariance, o, noise) for _, o in pairs], axis=0)
        for k, (y, o) in enumerate(pairs):
            gain = np.linalg.solve(covariance[np.ix_(o, o)] + noise * np.eye(o.sum()), covariance[o]).T
            estimates[g, k] = mean + gain @ (y[o] - mean[o])
            if len(variances):
                variances[g, k] = np.diag(_left_open(covariance, o, noise))


def _left_open(covariance, o, noise):
    """Posterior covariance of a patch with observed entries `o`."""
    return covariance - covariance[:, o] @ np.linalg.solve(covariance[np.ix_(o, o)] + noise * np.eye(o.sum()), covariance[o])


def add_up(groups, estimates, variances, size, floor, total, weight, squares):
    width = total.shape[2]
    variances = np.maximum(variances, 0) if len(variances) else None
    for g, group in enumerate(groups):
        for k, position in enumerate(group):
            top, left = divmod(int(position), width)
            place = np.s_[:, top : top + size, left : left + size]
            patch, variance = (np.zeros((len(total), size, size)) + a for a in (
                estimates[g, k].reshape(-1, size, size), 0 if variances is None else variances[g, k].reshape(-1, size, size)))
            own = np.ones_like(patch) if variances is None else 1 / np.sqrt(variance + floor)
            total[place] += own * patch
            weight[place] += own
            if len(squares):
                squares[place] += own * (patch**2 + variance)
