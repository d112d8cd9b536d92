package pack

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Validation is the result of a validation.
type Validation struct {
	File       string `json:"file"`
	Release    string `json:"release"`
	APIVersion string `json:"apiVersion"`
	Valid      bool   `json:"valid"`
	// By is byBinary or byRules, Judge describes it.
	By    string `json:"by"`
	Judge string `json:"judge"`
	// Reasons why the configuration is not valid.
	Reasons []string `json:"reasons,omitempty"`
	// Warnings are settings that the release accepts and ignores, or that rarely work as intended.
	Warnings []string `json:"warnings,omitempty"`
	// Hint is a remedy for the reasons.
	Hint string `json:"-"`
}

const (
	byBinary = "binary"
	byRules  = "knowledge" // the built-in rules
)

// Validate validates a configuration with the built-in rules, and also with the release's
// kube-scheduler if one was built on this machine. It is valid if both accept it.
func Validate(ctx context.Context, s *session.Session, r profiles.ValidateRequest) (*Validation, error) {
	rules, err := profiles.Validate(r)
	if err != nil {
		return nil, err
	}
	v := &Validation{File: r.SourceName, Release: r.Release.String(), APIVersion: rules.APIVersion, Valid: rules.Valid(),
		By: byRules}
	v.Hint = (&profiles.Error{Problems: rules.Problems}).Hint()
	for _, p := range rules.Problems {
		v.Reasons = append(v.Reasons, (&profiles.Error{Name: r.SourceName, Problems: []profiles.Problem{p}}).Error())
	}
	_, v.Warnings = profiles.SplitNotes(rules.Warnings, r.SourceName)
	binary, missing := releaseBinary(s, r, rules)
	v.Judge = "built-in rules for " + v.Release + ": " + missing
	if missing != "" {
		return v, nil
	}
	refusal, err := checkDocument(ctx, s, binary, rules)
	if errors.Is(err, configcheck.ErrNoBinary) {
		s.Warn(err.Error())
		return v, nil
	}
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		s.Warn(err.Error())
		err = nil
	}
	if err != nil {
		return nil, err
	}
	v.addBinary(binary.Origin, refusal)
	return v, nil
}

// addBinary adds a kube-scheduler's verdict: the reason why it refuses the document, or "" if it
// accepts it. It never makes a document valid that the rules reject.
func (v *Validation) addBinary(origin, refusal string) {
	v.By, v.Judge = byBinary, "built-in rules and "+origin
	if refusal != "" {
		v.Valid, v.Reasons = false, append([]string{refusal}, v.Reasons...)
	}
}

// releaseBinary finds a kube-scheduler for the release in the build cache with the document's
// plugins. missing is the reason for not finding one.
func releaseBinary(
	s *session.Session, r profiles.ValidateRequest, v *profiles.Validation,
) (binary configcheck.Binary, missing string) {
	if v.Kind != "KubeSchedulerConfiguration" {
		return binary, "only a KubeSchedulerConfiguration can be checked by kube-scheduler"
	}
	built := build.FindByRelease(s.CacheDir, r.Release.String(), build.KubeScheduler, build.Host())
	if len(built) == 0 {
		return binary, "no kube-scheduler of this release was built on this machine"
	}
	i := slices.IndexFunc(built, func(b *build.Result) bool { return hasPlugins(b, slices.Concat(v.Plugins, r.Plugins)) })
	switch {
	case i < 0 && len(r.Plugins) > 0:
		return binary, "no kube-scheduler of this release was built on this machine with " + strings.Join(r.Plugins, ", ")
	case i < 0:
		i = 0 // it reports the plugin that it does not have
	}
	return configcheck.Binary{Path: built[i].Binaries[0].Path,
		Origin: "the kube-scheduler " + r.Release.String() + " that was built on this machine"}, ""
}

func hasPlugins(r *build.Result, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(r.Info.Plugins, func(p plugins.Info) bool { return p.Name == name })
	})
}

// checkDocument returns the reason why the binary refuses the document, or "" if it is valid.
func checkDocument(
	ctx context.Context, s *session.Session, binary configcheck.Binary, v *profiles.Validation,
) (refusal string, err error) {
	dir, remove, err := safeio.MakeTemp("validate")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove()) }()
	const kubeconfig = "/nowhere/kubeconfig-of-the-document" // replaced by the check
	text, err := v.Standalone(kubeconfig)
	if err != nil {
		return "", err
	}
	err = configcheck.Check(ctx, binary, dir,
		configcheck.Request{Configuration: text, Kubeconfig: kubeconfig, Warn: s.Warn})
	var refused *configcheck.RefusedError
	if errors.As(err, &refused) {
		return refused.Reason, nil
	}
	return "", err
}
