// Package session executes commands that predict what a scheduler would do.
package session

import "github.com/pmk-sched/pmk-sched/internal/cluster/session"

// Session is one run of a command.
type Session struct{ *session.Session }
