package main

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const referencePath = "../../docs/reference.md"

var updateReference = flag.Bool("update", false, "write docs/reference.md")

func TestReferenceIsTheHelpOfTheCommands(t *testing.T) {
	got := reference(newApp(newUI(nil, &bytes.Buffer{}, &bytes.Buffer{}), "pmk-sched"))
	if *updateReference {
		if err := os.WriteFile(referencePath, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not up to date; go test ./cmd/pmk-sched -run Reference -update writes it:\n%s", referencePath, diff)
	}
	if long := regexp.MustCompile(`(?m)^.{101,}$`).FindString(string(got)); long != "" {
		t.Errorf("a line of a help text is longer than 100 columns: %s", long)
	}
}
