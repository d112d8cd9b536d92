// Package extenders deploys scheduler extenders, wires them into schedulers, restarts and uninstalls them.
package extenders
