package pack

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// A command that forgets the question compiles nothing.
func TestNothingUnconfirmedIsCompiled(t *testing.T) {
	open := &Unconfirmed{Origin: "revision 3 of s", Image: "registry.example.com/s:v1.24.3"}
	// Neither has a program to compile or a cache: both would fail in another way.
	_, err := Run(t.Context(), Request{Unconfirmed: open}, &session.Session{})
	const refusal = "refusing to build and push registry.example.com/s:v1.24.3, as revision 3 of s says, without " +
		"confirmation"
	if err == nil || err.Error() != refusal || !problem.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	_, err = Compile(t.Context(), &session.Session{}, versions.Release{},
		Scheduler{Unconfirmed: &Unconfirmed{Origin: "revision 3 of s"}})
	if err == nil || !problem.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
}
