package extender

import (
	"net/http"
	"slices"
	"strings"
)

// readiness is one check of /readyz.
type readiness struct {
	name  string
	check func() error
}

// Names of checks in /readyz. A policy's check is "policy/" and its name.
const (
	checkCache    = "cache"
	checkPolicies = "policies"
	policyPrefix  = "policy/"
)

// Ready returns why the extender is not ready: its cache is not filled, or a policy lacks its data.
// exclude are checks to skip: "cache", "policies", or "policy/" and a name.
func (e *Extender) Ready(exclude ...string) error {
	for _, r := range e.checks(exclude) {
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Extender) checks(exclude []string) []readiness {
	var all []readiness
	if e.cache != nil && !slices.Contains(exclude, checkCache) {
		all = append(all, readiness{checkCache, func() error {
			if !e.cache.Synced() {
				return errNotFilled
			}
			return nil
		}})
	}
	for _, p := range e.policies {
		if p.ready != nil && !slices.Contains(exclude, checkPolicies) && !slices.Contains(exclude, policyPrefix+p.name) {
			all = append(all, readiness{policyPrefix + p.name, p.ready.Ready})
		}
	}
	return all
}

// serveReady answers /readyz like Kubernetes' own servers.
func (e *Extender) serveReady(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var lines []string
	status := http.StatusOK
	for _, one := range e.checks(query["exclude"]) {
		if err := one.check(); err != nil {
			status = http.StatusServiceUnavailable
			lines = append(lines, "[-]"+one.name+" failed: "+err.Error())
			continue
		}
		lines = append(lines, "[+]"+one.name+" ok")
	}
	switch {
	case status != http.StatusOK:
		lines = append(lines, "not ready")
	case query.Has("verbose"):
		lines = append(lines, "ready")
	default:
		lines = []string{"ok"}
	}
	reply(w, status, strings.Join(lines, "\n"))
}
