// Package preflight checks a cluster before a deployment and reports the results as data.
//
// [Checks] returns the checks for a scheduler; [RunAll] runs them.
package preflight
