// Package v1alpha1 contains the API type CustomScheduler: the content of pmk-sched.yaml, what the
// flags of a command change, and what a revision records of the request that it was deployed for.
// It does no I/O.
package v1alpha1
