// Package health judges second schedulers and extenders: it turns what was read of them into findings, each with a stable
// code. It does no I/O; package observe reads.
package health
