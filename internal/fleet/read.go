package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// ReadOptions bound the load from reading a fleet.
type ReadOptions struct {
	// Parallel limits the clusters that are read at the same time.
	Parallel int
	// Timeout limits the time to read one cluster.
	Timeout time.Duration
}

// Row is the result of reading one cluster.
type Row[T any] struct {
	Cluster string            `json:"cluster"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Result may be incomplete if Error is set.
	Result *T `json:"result,omitempty"`
	// Error is the reason why the cluster, or a part of it, could not be read. Hints are remedies.
	Error string   `json:"error,omitempty"`
	Hints []string `json:"hints,omitempty"`
	// Warnings are about the cluster.
	Warnings []string `json:"warnings,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// reader reads one cluster.
type reader[T any] func(ctx context.Context, s *session.Session) (*T, error)

// readAll reads all clusters, and returns a row for each, in their order. The error is the
// context's.
func readAll[T any](
	ctx context.Context, s *session.Session, clusters []Cluster, o ReadOptions, read reader[T],
) ([]Row[T], error) {
	rows := make([]Row[T], len(clusters))
	var group errgroup.Group
	group.SetLimit(o.Parallel)
	for i, c := range clusters {
		group.Go(func() error {
			rows[i] = readOne(ctx, s, c, o.Timeout, read)
			return nil
		})
	}
	_ = group.Wait() // an error is part of a row
	return rows, ctx.Err()
}

// outcome has a reader's results.
type outcome[T any] struct {
	result *T
	err    error
}

// lateness is the time that a reader may take to return after its context has ended.
const lateness = 200 * time.Millisecond

// readOne reads one cluster. It does not wait for a reader that does not end with its context, such
// as a credential plugin that hangs: that reader ends with the process.
func readOne[T any](
	ctx context.Context, s *session.Session, c Cluster, timeout time.Duration, read reader[T],
) Row[T] {
	row := Row[T]{Cluster: c.Name, Labels: c.Labels}
	one, err := c.session(s)
	if err != nil {
		row.Error, row.Hints = err.Error(), problem.Hints(err)
		return row
	}
	var warnings list
	one = one.Quiet()
	one.Warn = warnings.add
	one.Connection.RequestTimeout = timeout
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan outcome[T], 1)
	go func() {
		result, err := read(limited, one)
		done <- outcome[T]{result, err}
	}()
	late := time.NewTimer(timeout + lateness)
	defer late.Stop()
	var got outcome[T]
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = ctx.Err()
	case <-late.C:
		got.err = context.DeadlineExceeded
	}
	row.Result, row.Seconds, row.Warnings = got.result, time.Since(began).Seconds(), warnings.all()
	if err := got.err; err != nil {
		row.Hints = problem.Hints(err)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", timeout)
		}
		row.Error = err.Error()
	}
	return row
}

// list collects messages from one cluster, also from a reader that was left.
type list struct {
	mu    sync.Mutex
	texts []string
}

func (l *list) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
}

func (l *list) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.texts...)
}
