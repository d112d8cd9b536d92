package ask

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// Subject is a scheduler to ask.
type Subject struct {
	pack.Scheduler
	// Unknown are facts about the scheduler that its answers do not contain. Absent is the reason why
	// it cannot be asked.
	Unknown []string
	Absent  error
}

// Schedulers answers questions with several schedulers, each of which it keeps running. Close it.
type Schedulers struct {
	engines []*engine
	// absent has the schedulers that could not be started, with the reasons.
	absent map[string]error
	routes Routes
	// places has an element for each question whose scheduler is looked up.
	places chan struct{}
}

// Start starts schedulers, one after the other. Of several, those that cannot be started are left
// out with a warning, and pods that name none get the one of a route. The cluster is only read.
func Start(ctx context.Context, s *session.Session, subjects []Subject, routes Routes) (*Schedulers, error) {
	all := &Schedulers{absent: map[string]error{}, routes: routes, places: make(chan struct{}, waiting)}
	for _, subject := range subjects {
		err := subject.Absent
		if err == nil {
			var e *engine
			if e, err = start(ctx, s, subject); err == nil {
				all.engines = append(all.engines, e)
				continue
			}
		}
		if ctx.Err() != nil || len(subjects) == 1 {
			return nil, errors.Join(err, all.Close())
		}
		all.absent[subject.Name] = err
		s.Warn(fmt.Sprintf("no questions about scheduler %s are answered: %v", subject.Name, err))
	}
	if len(all.engines) == 0 {
		return nil, errors.Join(slices.Collect(maps.Values(all.absent))...)
	}
	return all, nil
}

// Close stops the schedulers.
func (s *Schedulers) Close() error {
	var failed error
	for _, e := range s.engines {
		failed = errors.Join(failed, e.close())
	}
	return failed
}

// Status returns the states of the schedulers.
func (s *Schedulers) Status() []Status {
	var all []Status
	for _, e := range s.engines {
		all = append(all, e.status())
	}
	for _, name := range slices.Sorted(maps.Keys(s.absent)) {
		all = append(all, Status{Scheduler: name, Profiles: []string{}, Error: s.absent[name].Error()})
	}
	return all
}

// Ask answers a question of a client with the scheduler that it or its pods name. Clients get their
// answers in rotation. It returns [ErrBusy] if too many questions wait for this scheduler. A
// question whose context ends gives up its place.
func (s *Schedulers) Ask(ctx context.Context, client string, q Question) (*Answer, error) {
	asked, err := q.read()
	if err != nil {
		return nil, err
	}
	e, err := s.choose(ctx, q, &asked)
	if err != nil {
		return nil, err
	}
	return e.answer(ctx, client, q, &asked)
}

// several reports whether there are several schedulers, so that pods name one.
func (s *Schedulers) several() bool { return len(s.engines)+len(s.absent) > 1 }

// choose returns the scheduler for a question. The only one that runs gets all pods, as in
// `simulate add`; of several, the pods name one, or a route gives it to them.
func (s *Schedulers) choose(ctx context.Context, q Question, asked *scenario.Scenario) (*engine, error) {
	names := []string{q.Scheduler}
	if q.Scheduler == "" {
		if !s.several() {
			return s.engines[0], nil
		}
		if err := s.route(ctx, asked); err != nil {
			return nil, err
		}
		names = schedulerNames(asked)
	}
	var chosen *engine
	for _, name := range names {
		found, err := s.find(name)
		switch {
		case err != nil:
			return nil, err
		case chosen != nil && chosen != found:
			return nil, problem.Invalidf("ask about the pods of each one, or use --scheduler",
				"the pods name several schedulers: %s", strings.Join(names, ", "))
		}
		chosen = found
	}
	return chosen, nil
}

// route gives pods that name no scheduler the one of a route. It returns [ErrBusy] if it does so
// for too many questions.
func (s *Schedulers) route(ctx context.Context, asked *scenario.Scenario) error {
	select {
	case s.places <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-s.places }()
	return s.routes.apply(ctx, asked)
}

// schedulerNames returns the names of the schedulers of the pods, sorted.
func schedulerNames(asked *scenario.Scenario) []string {
	names := map[string]bool{}
	for i := range asked.Workloads {
		names[asked.Workloads[i].Scheduler()] = true
	}
	if len(names) == 0 {
		names[corev1.DefaultSchedulerName] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// find returns the engine that answers for a scheduler.
func (s *Schedulers) find(name string) (*engine, error) {
	var known []string
	for _, e := range s.engines {
		if slices.Contains(e.profiles, name) {
			return e, nil
		}
		known = append(known, e.profiles...)
	}
	if err := s.absent[name]; err != nil {
		return nil, fmt.Errorf("scheduler %s does not answer here: %w", name, err)
	}
	return nil, problem.Invalidf("name one of "+strings.Join(known, ", ")+" with --scheduler",
		"no scheduler %q answers here", name)
}

// StatusOf returns the HTTP status for an error of [Schedulers.Ask].
func StatusOf(err error) int {
	switch {
	case problem.IsInvalid(err):
		return http.StatusUnprocessableEntity
	case errors.Is(err, ErrBusy):
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}
