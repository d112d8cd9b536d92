package shadow

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

// Read implements [readonly.Handler]: it answers a list or a watch from the scheduler's own pod
// informer.
func (p *proxy) Read(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if r.URL.Path != readonly.PodsPath || !strings.Contains(query.Get("fieldSelector"), "status.phase!=") {
		return false
	}
	p.pods(w, r, query)
	return true
}

func (p *proxy) pods(w http.ResponseWriter, r *http.Request, query url.Values) {
	if version := query.Get("resourceVersion"); version != "" {
		query.Set("resourceVersion", clusterVersion(version))
	}
	p.Edit(w, r, query, func(from io.Reader) error {
		if !readonly.IsWatch(query) {
			return readonly.EditList(w, from, setVersion, p.lists)
		}
		s := &stream{proxy: p, to: w, flush: flusher(w), synced: query.Get("sendInitialEvents") != "true",
			since: query.Get("resourceVersion")}
		return s.watch(r.Context(), from)
	})
}

// lists returns a pod from a list as the shadow sees it, or nil.
func (p *proxy) lists(fields map[string]any) map[string]any {
	one := parsePod(fields)
	if !p.shows(one) {
		return nil
	}
	p.names.prepare(one)
	return one.fields
}

// shows reports whether the shadow sees a pod from a list, or from a watch's initial events.
func (p *proxy) shows(one *pod) bool {
	observed := one.scheduler == p.names.observed
	switch {
	case one.node == "" && observed:
		p.judge.wait(one.uid)
		p.later(one)
		return false
	case one.node != "":
		p.judge.found(one, observed)
	}
	return true
}

// later keeps a pod for the shadow until it watches, if the observed scheduler found no node for
// it.
func (p *proxy) later(one *pod) {
	if !one.refused || p.judge.refused(one.uid) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backlog = append(p.backlog, one)
}

// waiting returns the pods that were kept, and keeps them no longer.
func (p *proxy) waiting() []*pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.backlog
	p.backlog = nil
	return kept
}
