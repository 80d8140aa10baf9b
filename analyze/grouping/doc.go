// Package grouping splits a breakdown further: by module, class, role, phase, step, operator, dtype, size or stack.
// Phase, step and stack are those of a block's birth; the operator is the one that keeps an activation for backward, as
// autograd names it, and other categories have none.
package grouping
