package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestReferenceIsTheHelpOfTheCommands(t *testing.T) {
	got := command.Reference(newProgram(newUI(nil, &bytes.Buffer{}, &bytes.Buffer{}), "pmk-sched").App, "pmk-sched")
	golden.Equal(t, "../../docs/reference.md", got)
	if long := regexp.MustCompile(`(?m)^.{101,}$`).FindString(string(got)); long != "" {
		t.Errorf("a line of a help text is longer than 100 columns: %s", long)
	}
}
