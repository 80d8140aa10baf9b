// Package grouping splits a breakdown further: by module, class, role, phase, step, operator, dtype, size or stack.
// Phase, step and stack describe a block's birth. The operator is the operation that keeps an activation for
// backward, by autograd's name. Only activations have an operator.
package grouping
