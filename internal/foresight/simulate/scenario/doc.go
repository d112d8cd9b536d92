// Package scenario decides how a simulation treats the objects of a snapshot: which pods it
// schedules, in which order, and how an object without the fields that no scheduler reads is
// created on an API server.
//
// The package does no I/O.
package scenario
