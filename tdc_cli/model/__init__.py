"""The paper's model: configuration, state, densities, conditionals, kernels, samplers, posterior moments, diagnostics.
"""
