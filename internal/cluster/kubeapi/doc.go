// Package kubeapi contains the code that API server clients share.
//
// [ClientConfig] configures them. [Explain] turns client-go's errors into [UnreachableError] and
// [ForbiddenError], with hints for the user. [Transient] reports which errors are worth a retry,
// and a [Retrier] retries them.
package kubeapi
