// Package soak runs a scheduler and an extender under a constant load for an hour.
package soak
