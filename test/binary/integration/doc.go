// Package integration runs upstream's integration tests of schedulers.
//
// Those of Kubernetes run twice: as they are, and with the adapter of portable plugins in every
// scheduler that they start. A plugin that has every extension point and no effect changes no
// result. Those of scheduler-plugins run with its own plugins and with the bundled ones.
//
// The modules are fetched, and what differs from them is in overlays of the go command, on copies
// of the modules. Build tag releases; RELEASE names the releases, ROUNDS is how often each side
// runs, and OUTPUT names a directory for what the tests print.
package integration
