// Package kubeapi has what clients of an API server share.
//
// [ClientConfig] configures them. [Explain] turns the errors of client-go into [UnreachableError] and [ForbiddenError], which have hints for
// the user. [Transient] reports which errors are worth a retry, and a [Retrier] retries them.
package kubeapi
