// Package integration runs upstream's integration tests of the scheduler of several releases twice:
// as they are, and with the adapter of portable plugins in every scheduler that they start. A
// plugin that has every extension point and no effect changes no result. Build tag releases;
// RELEASE names other releases, and ROUNDS how often each side runs.
package integration
