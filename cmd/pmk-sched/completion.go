package main

import (
	"context"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// candidates returns completions for the value of a command's flag or, if the flag is empty, for
// the command's argument.
func candidates(ctx context.Context, u *ui, path, flag string) []string {
	switch {
	case flag == "preset", flag == "" && path == " profile show":
		return presetNames()
	case flag == "to" && path != " rollback":
		return command.Releases()
	case flag == "name" && !strings.HasPrefix(path, " extender"), flag == "for":
		return schedulerNames(ctx, u)
	}
	return nil
}

func presetNames() []string {
	var names []string
	for _, p := range profiles.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// completionTimeout bounds the wait for the cluster while the user waits for a completion.
const completionTimeout = 2 * time.Second

// schedulerNames returns the deployed schedulers' names, or nil if the cluster does not answer.
func schedulerNames(ctx context.Context, u *ui) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	names, _ := lifecycle.SchedulerNames(ctx, u.Session)
	return names
}
