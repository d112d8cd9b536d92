// Package airgap tests a machine without a network: a Debian root with only a package of pmk-sched
// and a bundle, in a network namespace without a route.
package airgap
