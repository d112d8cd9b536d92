// Package kubeapi contains the shared code of clients of an API server.
//
// [ClientConfig] configures them. [Explain] turns the errors of client-go into [UnreachableError]
// and [ForbiddenError], with hints for the user. [Transient] reports which errors are worth a
// retry, and a [Retrier] retries them.
package kubeapi
