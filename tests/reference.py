"""Plain NumPy twins of the compiled kernels: same names, same parameters, the plainest formula that says what each must
do.
"""

import numpy as np
from scipy.ndimage import map_coordinates, uniform_filter

from tdc_cli.patches import kernels


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
        chosen = entries[begins[s] : ends[s]]
        gram = np.einsum("n,na,nb->ab", precisions[chosen], c[chosen], c[chosen])
        grams[s][upper] = gram[upper]
        products[s] = (precisions[chosen] * targets[chosen]) @ c[chosen]


def contract_rows(grams, products, rows, factor, gram, product):
    u = factor[rows]
    gram[:] = np.sum([np.outer(line, line) * _full(g) for line, g in zip(u, grams)], axis=0)
    product[:] = np.sum(u * products[: len(rows)], axis=0)


def draw_rows(grams, products, bounds, weights, diagonals, shifts, noise, rows):
    for i in range(len(bounds) - 1):
        mine = slice(bounds[i], bounds[i + 1])
        precision = np.diag(weights) @ _full(grams[mine].sum(axis=0)) @ np.diag(weights) + diagonals[i] * np.eye(
            len(weights)
        )
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


def draw_rows_one_by_one(
    stack, first, coordinates, entries, starts, mode, rows, precision, weights, diagonals, shifts, noise, residuals
):
    c = _products(stack, first, coordinates, mode) * weights
    for i, row in enumerate(rows):
        mine = entries[starts[row] : starts[row + 1]]
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


def invert_lanes(matrix, order, height):
    """After `factorise` with the identity as right sides 1 to order: minus the inverses, (16, order, order), beside the
    flat array.
    """
    view = matrix[: order * height * 16].reshape(order, height, 16)
    roots = view[:, order + 1 : 2 * order + 1].transpose(2, 0, 1)
    return -roots.transpose(0, 2, 1) @ roots


def gram(patches, products):
    products[:] = patches.T @ patches


def multiply(left, right, products):
    products[:] = left @ right


def invert(matrix, root):
    upper = np.triu(matrix)
    matrix[:] = np.linalg.inv(upper + np.triu(upper, 1).T)


def _patches(image, positions, frame, depth, size):
    """Patches at flat positions, (..., depth C size^2)."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), (1, 2))
    top, left = np.divmod(positions, image.shape[2])
    frames = [np.moveaxis(windows[:, top + d * frame, left], 0, -3) for d in range(depth)]
    return np.stack(frames, axis=-4).reshape(*np.shape(positions), -1)


def distances(image, place, offsets, patch, plus, minus, out, where, count):
    squared = (image[place + np.arange(count)[:, None] + offsets].astype(float) - patch) ** 2
    out[where : where + count] = squared[:, :plus].sum(axis=1) - squared[:, plus : plus + minus].sum(axis=1)


def match(image, positions, frame, depth, size, window, reach, drift, contrast, groups):
    width, last_frame = image.shape[2], image.shape[1] // frame - depth

    def around(position, t, row, column, shift):
        """Places of frame `t` up to `shift` from (row, column), and their distances."""
        rows = np.arange(max(0, row - shift), min(frame - size, row + shift) + 1)
        columns = np.arange(max(0, column - shift), min(width - size, column + shift) + 1)
        places = ((t * frame + rows[:, None]) * width + columns).ravel()
        difference = _patches(image, places, frame, depth, size).astype(float) - _patches(
            image, position, frame, depth, size
        ).astype(float)
        means = difference.reshape(len(places), -1, size**2).mean(axis=2)
        distance = np.sum(difference**2, axis=1) - contrast * size**2 * np.sum(means**2, axis=1)
        distance[places == position] = -np.inf
        return places, distance

    for g, position in enumerate(positions):
        top, left = divmod(int(position), width)
        own, top = divmod(top, frame)
        found = {own: around(position, own, top, left, window)}
        for side in (range(own + 1, min(last_frame, own + reach) + 1), range(own - 1, max(0, own - reach) - 1, -1)):
            row, column = top, left
            for t in side:
                found[t] = around(position, t, row, column, drift)
                row, column = divmod(int(found[t][0][np.argmin(found[t][1])]) - t * frame * width, width)
        candidates, distance = (np.concatenate([found[t][part] for t in sorted(found)]) for part in (0, 1))
        groups[g] = candidates[np.argsort(distance, kind="stable")[: groups.shape[1]]]


def estimate(image, data, groups, frame, depth, size, taper, ridge, noise, uncertain, apart, estimates, variances):
    if apart:
        _estimate_apart(image, data, groups, frame, depth, size, taper, ridge, noise, estimates, variances)
        return
    for g, group in enumerate(groups):
        now = _patches(image, group, frame, depth, size).astype(float)
        mean = now.mean(axis=0)
        covariance = np.cov(now.T, bias=True) * taper + ridge * np.eye(now.shape[1])
        pairs = [(y, ~np.isnan(y)) for y in _patches(data, group[: estimates.shape[1]], frame, depth, size)]
        together = np.diag(covariance)
        if uncertain:
            rounding = kernels.ROUNDING * np.trace(covariance)
            left_open = np.mean([_left_open(covariance, o, noise + rounding) for _, o in pairs[:16]], axis=0)
            covariance = covariance + taper * left_open
            together = np.diag(left_open)
        if variances.shape[1] == 1:
            variances[g] = together
        for k, (y, o) in enumerate(pairs):
            gain = np.linalg.solve(covariance[np.ix_(o, o)] + noise * np.eye(o.sum()), covariance[o]).T
            estimates[g, k] = mean + gain @ (y[o] - mean[o])
            if variances.shape[1] > 1:
                variances[g, k] = np.diag(_left_open(covariance, o, noise))


def _estimate_apart(image, data, groups, frame, depth, size, taper, ridge, noise, estimates, variances):
    shape = (-1, depth, len(image), size * size)
    for g, group in enumerate(groups):
        now = _patches(image, group, frame, depth, size).astype(float)
        mean = now.mean(axis=0)
        colours = np.moveaxis((now - mean).reshape(shape), 2, 3).reshape(-1, len(image))
        axes = np.linalg.eigh(colours.T @ colours)[1]
        turned, told = (
            np.einsum("kfcs,ca->akfs", (a - mean).reshape(shape), axes).reshape(len(image), len(a), -1)
            for a in (now, _patches(data, group[: estimates.shape[1]], frame, depth, size))
        )
        estimates[g], variances[g : g + 1] = mean, 0
        for axis, own, y in zip(axes.T, turned, told):
            covariance = own.T @ own / len(own) * taper + ridge * np.eye(own.shape[1])
            for k, o in enumerate(~np.isnan(y)):
                gain = np.linalg.solve(covariance[np.ix_(o, o)] + noise * np.eye(o.sum()), covariance[o]).T
                back = np.einsum("fs,c->fcs", (gain @ y[k, o]).reshape(depth, -1), axis)
                estimates[g, k] += back.ravel()
                if len(variances):
                    left = np.diag(_left_open(covariance, o, noise)).reshape(depth, -1)
                    variances[g, k] += np.einsum("fs,c->fcs", left, axis**2).ravel()


def _left_open(covariance, o, noise):
    """Posterior covariance of a patch with observed entries `o`."""
    return covariance - covariance[:, o] @ np.linalg.solve(
        covariance[np.ix_(o, o)] + noise * np.eye(o.sum()), covariance[o]
    )


def find_motion(frame, seen, frames, weights, gaps, share, steps, prices, least, sides, best, motion):
    height, width = best.shape
    border = (frame.shape[-1] - width) // 2

    def moved(array, by):
        return array[..., border + by[0] : border + by[0] + height, border + by[1] : border + by[1] + width]

    def error(one, its_weight, other, other_weight, side):
        weight = np.maximum(its_weight * other_weight, least).astype(float)
        squared = np.mean((one - other) ** 2, axis=0)
        around = [uniform_filter(plane, side, mode="nearest") for plane in (weight * squared, weight)]
        return around[0] / around[1]

    for step, price in zip(steps, prices):
        there = [(moved(f, gap * step), moved(w, gap * step)) for f, w, gap in zip(frames, weights, gaps)]
        errors = [error(moved(frame, (0, 0)), moved(seen, (0, 0)), *other, sides[0]) for other in there]
        cost = errors[0]
        if len(errors) > 1:
            agreed = 2 * errors[0] * errors[1] / np.maximum(errors[0] + errors[1], 1e-37)
            cost = share * agreed + (1 - share) * error(*there[0], *there[1], sides[1])
        better = cost + price < best
        best[better] = (cost + price)[better]
        motion[:, better] = np.asarray(step)[:, None]


def shrink(image, groups, frame, depth, size, noise, estimates, variances):
    for g, group in enumerate(groups):
        patches = _patches(image, group, frame, depth, size).astype(float)
        mean, (shorter, longer) = patches.mean(axis=0), sorted(patches.shape)
        left, values, right = np.linalg.svd(patches - mean, full_matrices=False)
        ratio, scaled = shorter / longer, values / np.sqrt(noise * longer)
        kept = np.maximum(scaled, 1 + np.sqrt(ratio))
        factors = np.sqrt(np.maximum((kept**2 - ratio - 1) ** 2 - 4 * ratio, 0)) / kept**2
        estimates[g] = mean + (left * factors * values) @ right
        variances[g] = noise * (1 / shorter + 1 / longer) * factors.sum() + noise / len(patches)


def add_up(groups, estimates, variances, frame, depth, size, floor, total, weight, squares):
    width = total.shape[2]
    variances = np.maximum(variances, 0) if len(variances) else np.zeros((len(estimates), 1, estimates.shape[2]))
    variances = np.broadcast_to(variances, estimates.shape)
    equal = not variances.any()
    shape = (*estimates.shape[:2], depth, len(total), size, size)
    estimates, variances = estimates.reshape(shape), variances.reshape(shape)
    for g, k, d in np.ndindex(shape[:3]):
        top, left = divmod(int(groups[g, k]), width)
        place = np.s_[:, top + d * frame : top + d * frame + size, left : left + size]
        patch, variance = estimates[g, k, d].astype(float), variances[g, k, d]
        own = np.ones_like(patch) if equal else 1 / np.sqrt(variance + floor)
        total[place] += own * patch
        weight[place] += own
        if len(squares):
            squares[place] += own * (patch**2 + variance)


def _window(pixel, size, height, width):
    """Corners (top, left) of all patches over a pixel, row by row."""
    row, column = divmod(int(pixel), width)
    return [(top, left) for top in range(max(0, row - size + 1), min(row, height - size) + 1)
            for left in range(max(0, column - size + 1), min(column, width - size) + 1)]  # fmt: skip


def _proposals(pixel, hole, size, sources, votes):
    """(proposed pixel, weight) of all patches over a pixel whose sources are known there."""
    height, width = hole.shape
    found = [(int(sources[top * width + left]) + pixel - top * width - left, votes[top * width + left])
             for top, left in _window(pixel, size, height, width) if sources[top * width + left] >= 0]  # fmt: skip
    return [(place, weight) for place, weight in found if not hole.flat[place]]


def _square(plane, place, size, width):
    top, left = divmod(place, width)
    return plane[top : top + size, left : left + size].astype(float)


def _better(layers, weights, allowed, favour, size, target, found, row, column):
    """`found`, (place, cost) of a target's source, or that at (row, column) if it may be and costs less, less what each
    is favoured by.
    """
    height, width, channels = layers.shape
    place = row * width + column
    if not (0 <= row <= height - size and 0 <= column <= width - size and allowed[place]):
        return found
    trust = _square(weights, target, size, width)[..., None]
    squares = trust * (_square(layers, target, size, width) - _square(layers, place, size, width)) ** 2
    cost = np.float32(squares.sum() / (max(trust.sum(), 1) * channels))
    return (place, cost) if cost - favour[place] < found[1] - favour[found[0]] else found


def search(layers, weights, allowed, favour, size, targets, sources, jumps, draws, radii, new_sources, costs):
    height, width, _ = layers.shape
    for t, target in enumerate(int(target) for target in targets):
        given = layers, weights, allowed, favour, size, target
        top, left = divmod(target, width)
        found = int(sources[target]), np.float32(np.inf)
        if found[0] >= 0:
            found = _better(*given, found, *divmod(found[0], width))
        for jump in jumps:
            for down, across in ((jump, 0), (-jump, 0), (0, jump), (0, -jump)):
                row, column = top + down, left + across
                if 0 <= row <= height - size and 0 <= column <= width - size and sources[row * width + column] >= 0:
                    y, x = divmod(int(sources[row * width + column]), width)
                    found = _better(*given, found, y - down, x - across)
        for k, (down, across) in enumerate(draws[t]):
            y, x = divmod(found[0], width) if found[0] >= 0 else (top, left)
            radius = np.float32(max(height, width)) * np.float32(0.5) ** (k % radii)
            found = _better(*given, found, y + int(np.rint(radius * down)), x + int(np.rint(radius * across)))
        new_sources[target], costs[t] = found


def vote(layers, hole, size, pixels, sources, votes, made):
    flat = layers.reshape(hole.size, -1)
    for p, pixel in enumerate(pixels):
        proposals = _proposals(int(pixel), hole, size, sources, votes)
        made[p] = (
            np.average([flat[q] for q, _ in proposals], axis=0, weights=[w for _, w in proposals])
            if proposals
            else np.nan
        )


def choose(hole, size, pixels, sources, votes, origins):
    for p, pixel in enumerate(pixels):
        totals = {}
        for place, weight in _proposals(int(pixel), hole, size, sources, votes):
            totals[place] = totals.get(place, np.float32(0)) + weight
        origins[p] = max(totals, key=totals.get) if totals else -1


def sample(one, other, known, slopes, rows, columns, map_, least, shown, apart, inclines):
    places = map_[:2] @ np.stack([rows, columns, np.ones(len(rows))])
    shown[:] = map_coordinates(known.astype(float), places, order=1, mode="constant") >= least
    for plane, out in ((other, apart), *zip(slopes, inclines)):
        out[shown] = map_coordinates(plane.astype(float), places[:, shown], order=1, mode="nearest")
    apart[shown] -= one[rows, columns][shown]
