// Package health evaluates second schedulers and extenders: it turns their observed state into
// findings, each with a stable code. It does no I/O; package observe reads the state.
package health
