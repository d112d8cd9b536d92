// Package kubeapi explains what an API server answers, or that it does not answer, and tries again what is worth trying again.
//
// It is a leaf: whoever speaks with a cluster may use it. [Explain] turns the errors of client-go into two types that a person can act on,
// [UnreachableError] and [ForbiddenError]; [Transient] tells which errors pass by themselves; a [Retrier] waits for them to pass.
package kubeapi
