package build

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// progress counts the packages that a go command compiles, which it prints with -v.
type progress struct {
	// The step in few words.
	what string
	// packages maps the programs' packages to the bytes to compile. They are 0 if the go command is
	// not expected to compile the package, or has printed it.
	packages map[string]int64
	// done and total count packages, doneBytes and totalBytes their sources.
	done, total           int
	doneBytes, totalBytes int64
	started               time.Time
	report                func(text string)
}

func newProgress(ctx context.Context, r *recipe, targets []target, packages map[string]int64) *progress {
	p := &progress{
		what: "compile " + targets[0].Program.Name, packages: maps.Clone(packages), started: time.Now(),
		report: func(text string) { steps.Progress(ctx, text) },
	}
	if len(targets) > 1 {
		p.what += ", …"
	}
	p.what += " " + r.info.Release
	for _, size := range packages {
		if size > 0 {
			p.total++
			p.totalBytes += size
		}
	}
	return p
}

// drop reports whether a line is a package's import path, and reports the progress if it is.
func (p *progress) drop(line string) bool {
	size, known := p.packages[line]
	if size > 0 {
		p.packages[line] = 0
		p.done++
		p.doneBytes += size
		p.report(fmt.Sprintf("%s: %s of %s packages%s", p.what, thousands(p.done), thousands(p.total), p.timeLeft()))
	}
	return known
}

// minEstimate is the time to count packages before the remaining time is estimated.
const minEstimate = 5 * time.Second

// timeLeft estimates the time for the other packages from the time for the first ones and the sizes
// of their sources. Linking follows.
func (p *progress) timeLeft() string {
	if p.done == p.total {
		return ", linking"
	}
	spent := time.Since(p.started)
	if spent < minEstimate {
		return ""
	}
	left := time.Duration(float64(spent) * float64(p.totalBytes-p.doneBytes) / float64(p.doneBytes))
	if left < time.Minute {
		return fmt.Sprintf(", about %d s left", max(10, int(left.Round(10*time.Second).Seconds())))
	}
	return fmt.Sprintf(", about %d min left", int(left.Round(time.Minute).Minutes()))
}

// thousands writes a number with a comma after the thousands.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
