package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rollout gives a scheduler the pods of its route step by step. Each step is judged by the pods
// that were routed in it. If a gate is violated, no pod is routed any more.
type Rollout struct {
	// Steps are the shares of the route in percent, each larger than the one before. The default is
	// 1, 10, 50, 100.
	Steps []int `json:"steps,omitempty" yaml:"steps"`
	// Gates are the conditions of a step: unschedulable<=NUMBER of pods, wait-p99<=DURATION from
	// creation to binding, and agreement>=PERCENT, which a shadow has to reach before the first step
	// and which `pmk-sched controller` does not accept. The default is unschedulable<=0 and
	// wait-p99<=5s.
	Gates []string `json:"gates,omitempty" yaml:"gates"`
	// StepTime is how long each step lasts at least. The default is 5m.
	StepTime Duration `json:"stepTime,omitempty" yaml:"stepTime"`
	// StepLimit is the time within which a step must see MinPods, or the rollout ends without a
	// verdict. The default is 1h.
	StepLimit Duration `json:"stepLimit,omitempty" yaml:"stepLimit"`
	// MinPods is the number of pods without which a step, or the shadow, is not judged. The default is
	// 5.
	MinPods int `json:"minPods,omitempty" yaml:"minPods" jsonschema:"minimum=1,maximum=10000"`
	// SettleTime is the time after which a pod that still waits counts as unschedulable. The default
	// is 30s.
	SettleTime Duration `json:"settleTime,omitempty" yaml:"settleTime"`
	// ShadowTime is how long the shadow runs if there is a gate for it. The default is 10m.
	ShadowTime Duration `json:"shadowTime,omitempty" yaml:"shadowTime"`
	// State is recorded by a rollout.
	State *RolloutState `json:"state,omitempty" yaml:"-" jsonschema:"-"`
}

// RolloutState is the state of a rollout in a recorded request.
type RolloutState struct {
	// Verdict is empty while the rollout runs.
	Verdict string `json:"verdict,omitempty"`
	// Reason explains the verdict.
	Reason string `json:"reason,omitempty"`
}

// Verdicts of a rollout.
const (
	RolloutPassed      = "Passed"
	RolloutViolated    = "Violated"
	RolloutNotJudged   = "NotJudged"
	RolloutInterrupted = "Interrupted"
)

// Runs reports whether a rollout is at one of its steps.
func (r *Rollout) Runs() bool { return r != nil && r.State != nil && r.State.Verdict == "" }

// StepsOrDefault returns the shares in percent.
func (r *Rollout) StepsOrDefault() []int {
	if len(r.Steps) == 0 {
		return []int{1, 10, 50, WholeShare}
	}
	return r.Steps
}

// Position returns the number of the step with a share, from 1, and the number of steps.
func (r *Rollout) Position(share int) (step, steps int) {
	list := r.StepsOrDefault()
	at, found := slices.BinarySearch(list, share)
	if found {
		at++
	}
	return max(at, 1), len(list)
}

// GatesOrDefault returns the gates, which are valid in a validated object.
func (r *Rollout) GatesOrDefault() []Gate {
	texts := r.Gates
	if len(texts) == 0 {
		texts = []string{GateUnschedulable + "<=0", GateWait + "<=5s"}
	}
	var gates []Gate
	for _, text := range texts {
		if g, err := ParseGate(text); err == nil {
			gates = append(gates, g)
		}
	}
	return gates
}

// Gate returns the gate with a metric, and whether there is one.
func (r *Rollout) Gate(metric string) (Gate, bool) {
	gates := r.GatesOrDefault()
	at := slices.IndexFunc(gates, func(g Gate) bool { return g.Metric == metric })
	if at < 0 {
		return Gate{}, false
	}
	return gates[at], true
}

// StepTimeOrDefault returns how long each step lasts at least.
func (r *Rollout) StepTimeOrDefault() time.Duration {
	return cmp.Or(time.Duration(r.StepTime), 5*time.Minute)
}

// StepLimitOrDefault returns the time within which a step must see enough pods.
func (r *Rollout) StepLimitOrDefault() time.Duration {
	return max(cmp.Or(time.Duration(r.StepLimit), time.Hour), r.StepTimeOrDefault())
}

// MinPodsOrDefault returns the number of pods without which nothing is judged.
func (r *Rollout) MinPodsOrDefault() int { return cmp.Or(r.MinPods, 5) }

// SettleTimeOrDefault returns the time after which a pod that waits counts as unschedulable.
func (r *Rollout) SettleTimeOrDefault() time.Duration {
	return cmp.Or(time.Duration(r.SettleTime), 30*time.Second)
}

// ShadowTimeOrDefault returns how long the shadow runs.
func (r *Rollout) ShadowTimeOrDefault() time.Duration {
	return cmp.Or(time.Duration(r.ShadowTime), 10*time.Minute)
}

// Metrics of gates.
const (
	// GateAgreement is the percentage of the decisions of the shadow that equal the cluster's.
	GateAgreement = "agreement"
	// GateUnschedulable is the number of routed pods that found no node, or wait for too long.
	GateUnschedulable = "unschedulable"
	// GateWait is the 99th percentile of the times from creation to binding.
	GateWait = "wait-p99"
)

// Gate is a condition of a step.
type Gate struct {
	Metric string
	// Limit is a percentage, a number of pods, or seconds.
	Limit float64
	text  string
}

// String returns the gate as it is written.
func (g Gate) String() string { return g.text }

// ParseGate parses agreement>=PERCENT, unschedulable<=NUMBER or wait-p99<=DURATION.
func ParseGate(text string) (Gate, error) {
	g := Gate{text: text}
	for _, operator := range []string{"<=", ">="} {
		metric, limit, found := strings.Cut(text, operator)
		if !found {
			continue
		}
		g.Metric = metric
		var err error
		switch metric + operator {
		case GateAgreement + ">=":
			g.Limit, err = strconv.ParseFloat(strings.TrimSuffix(limit, "%"), 64)
			if err == nil && !(g.Limit >= 0 && g.Limit <= 100) {
				err = fmt.Errorf("%q is not between 0 and 100", limit)
			}
		case GateUnschedulable + "<=":
			var pods int
			pods, err = strconv.Atoi(limit)
			if g.Limit = float64(pods); err == nil && pods < 0 {
				err = fmt.Errorf("%q is negative", limit)
			}
		case GateWait + "<=":
			var wait time.Duration
			wait, err = time.ParseDuration(limit)
			if g.Limit = wait.Seconds(); err == nil && wait <= 0 {
				err = fmt.Errorf("%q is not positive", limit)
			}
		default:
			continue
		}
		if err != nil {
			return Gate{}, fmt.Errorf("invalid gate %.100q: %w", text, err)
		}
		return g, nil
	}
	return Gate{}, fmt.Errorf("invalid gate %.100q: must be %s>=PERCENT, %s<=NUMBER or %s<=DURATION", text, GateAgreement,
		GateUnschedulable, GateWait)
}

// ValidateRollout returns an error, with the field's path, for a rollout that cannot be run.
func (s *CustomScheduler) ValidateRollout() error {
	r := s.Spec.Rollout
	if r == nil {
		return nil
	}
	if err := r.validate(); err != nil {
		err.text = "spec.rollout: " + err.text
		return err
	}
	if s.Spec.Route == nil {
		return &Error{text: "spec.rollout: spec.route is missing", hint: "a rollout changes the share of a route"}
	}
	return nil
}

// maxSteps bounds the steps and the gates.
const maxSteps = 20

func (r *Rollout) validate() *Error {
	if len(r.Steps) > maxSteps || len(r.Gates) > maxSteps {
		return &Error{text: fmt.Sprintf("more than %d steps or gates", maxSteps)}
	}
	before := 0
	for i, share := range r.Steps {
		if share <= before || share > WholeShare {
			return &Error{text: fmt.Sprintf("steps[%d]: invalid share %d", i, share),
				hint: "steps are percentages between 1 and 100, each larger than the one before"}
		}
		before = share
	}
	var metrics []string
	for i, text := range r.Gates {
		g, err := ParseGate(text)
		if err != nil {
			return &Error{text: fmt.Sprintf("gates[%d]: %v", i, err)}
		}
		if slices.Contains(metrics, g.Metric) {
			return &Error{text: fmt.Sprintf("gates[%d]: %s has more than one gate", i, g.Metric)}
		}
		metrics = append(metrics, g.Metric)
	}
	if len(metrics) > 0 && slices.Equal(metrics, []string{GateAgreement}) {
		return &Error{text: "gates: no gate for the steps",
			hint: "add " + GateUnschedulable + "<=0 or " + GateWait + "<=5s"}
	}
	if r.MinPods < 0 {
		return &Error{text: fmt.Sprintf("minPods: invalid value %d", r.MinPods)}
	}
	for _, d := range []Duration{r.StepTime, r.StepLimit, r.SettleTime, r.ShadowTime} {
		if d < 0 {
			return &Error{text: fmt.Sprintf("invalid duration %s", time.Duration(d))}
		}
	}
	return nil
}
