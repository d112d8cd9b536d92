// Package host is the part of the adapters that has nothing to do with a framework's types: the
// plugin's arguments, metrics, log, and the check that nothing of a plugin was left out.
package host
