// Package v1alpha1 contains the API type CustomScheduler: the content of pmk-sched.yaml, which the
// flags of a command change and a revision records. It does no I/O.
package v1alpha1
