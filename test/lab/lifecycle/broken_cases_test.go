//go:build linux && cases

package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

func TestLabDownAfterUpWasKilledLeavesNothing(t *testing.T) { whileTheAPIServerStarts.leavesNothing(t) }

func TestLabUpThatIsCancelledLeavesNothing(t *testing.T) {
	m := watchMachine(t)
	stateDir, cacheDir := directories(t)
	o := options(t, stateDir, cacheDir, "cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	o.OnStep = func(step string) func(error) {
		if strings.HasPrefix(step, "start the API server") {
			cancel()
		}
		return nil
	}
	if _, err := lab.Up(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if labs, err := lab.List(stateDir); err != nil || len(labs) != 0 {
		t.Errorf("labs left: %d, %v", len(labs), err)
	}
	m.unchanged(t)
}
