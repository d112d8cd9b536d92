//go:build linux

// Package admission runs the admission webhooks as processes, with the permissions of their
// ServiceAccount, and binds pods through a real API server that asks them.
package admission
