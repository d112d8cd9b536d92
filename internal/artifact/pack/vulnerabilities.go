package pack

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/documents"
)

// writeVEX writes the vulnerabilities that the program does not call to the request's file.
func writeVEX(ctx context.Context, r Request, result *Result) error {
	if r.VEX == "" {
		return nil
	}
	var text bytes.Buffer
	err := documents.WriteVEX(&text, build.KubeScheduler, result.Release, result.Vulnerabilities)
	if err == nil {
		err = writeFile(ctx, r.VEX, 0o644, &text)
	}
	if err != nil {
		return fmt.Errorf("write --vex: %w", err)
	}
	result.Written = append(result.Written, r.VEX)
	return nil
}

// VulnerableError is returned when a program calls functions with known vulnerabilities.
type VulnerableError struct {
	Program string
	// Called are the vulnerabilities' IDs.
	Called []string
}

// Error lists the vulnerabilities.
func (e *VulnerableError) Error() string {
	return fmt.Sprintf("%s calls functions with known vulnerabilities: %s", e.Program, strings.Join(e.Called, ", "))
}

// Hint returns a suggestion for the user.
func (e *VulnerableError) Hint() string {
	return "build a newer patch of the release, or fix vulnerabilities of the standard library (stdlib) with --go newest"
}

// CheckFailed reports that the image was built, and that its program is vulnerable.
func (e *VulnerableError) CheckFailed() bool { return true }

// Called returns the vulnerabilities whose functions the program calls.
func (r *Result) Called() []build.Vulnerability {
	return slices.DeleteFunc(slices.Clone(r.Vulnerabilities),
		func(v build.Vulnerability) bool { return v.Reach != build.ReachCalled })
}

// Vulnerable returns a VulnerableError if the program calls functions with known vulnerabilities.
func (r *Result) Vulnerable() error {
	e := &VulnerableError{Program: build.KubeScheduler + " " + r.Release}
	for _, v := range r.Called() {
		e.Called = append(e.Called, v.ID)
	}
	if len(e.Called) == 0 {
		return nil
	}
	return e
}
