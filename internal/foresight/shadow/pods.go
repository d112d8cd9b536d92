package shadow

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"go.uber.org/zap"
)

// podsPath is the path for pods in all namespaces.
const podsPath = "/api/v1/pods"

// pods answers a list or a watch from the scheduler's own pod informer.
func (p *proxy) pods(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if version := query.Get("resourceVersion"); version != "" {
		query.Set("resourceVersion", clusterVersion(version))
	}
	response, err := p.readPods(r, query)
	if err != nil {
		fail(w, r, err)
		return
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code != http.StatusOK:
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(code)
		_, err = io.Copy(w, response.Body)
	case isWatch(query):
		w.Header().Set("Content-Type", "application/json")
		s := &stream{proxy: p, to: w, flush: flusher(w), synced: query.Get("sendInitialEvents") != "true",
			since: query.Get("resourceVersion")}
		err = s.watch(r.Context(), response.Body)
	default:
		w.Header().Set("Content-Type", "application/json")
		err = p.listPods(w, response.Body)
	}
	if err != nil && r.Context().Err() == nil {
		p.log.Warn("the shadow reads the pods again", zap.Error(err))
		panic(http.ErrAbortHandler) // the shadow has only a part of the response
	}
}

// readPods sends the shadow's request, with another query, to the API server.
func (p *proxy) readPods(r *http.Request, query url.Values) (*http.Response, error) {
	target := p.server.JoinPath(podsPath)
	target.RawQuery = query.Encode()
	out, err := http.NewRequestWithContext(r.Context(), http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", p.agent)
	return p.RoundTrip(out)
}

// listPods writes a list of pods without the pods that wait for the observed scheduler, one pod at
// a time: as JSON, a large cluster's pods do not fit into memory.
func (p *proxy) listPods(w io.Writer, from io.Reader) error {
	d := json.NewDecoder(from)
	d.UseNumber()
	if err := expect(d, '{'); err != nil {
		return err
	}
	separator := "{"
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("read the list of pods: %w", err)
		}
		if _, err := fmt.Fprintf(w, "%s%q:", separator, key); err != nil {
			return err
		}
		separator = ","
		if key == "items" {
			err = p.listItems(w, d)
		} else {
			err = listField(w, d, key)
		}
		if err != nil {
			return err
		}
	}
	if err := expect(d, '}'); err != nil {
		return err
	}
	_, err := io.WriteString(w, "}")
	return err
}

// listField writes a field in a list.
func listField(w io.Writer, d *json.Decoder, key any) error {
	var value any
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("read %s of the list of pods: %w", key, err)
	}
	if metadata, ok := value.(map[string]any); ok && key == "metadata" {
		setVersion(metadata)
	}
	return json.NewEncoder(w).Encode(value)
}

// listItems writes the pods in a list.
func (p *proxy) listItems(w io.Writer, d *json.Decoder) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	encoder, separator := json.NewEncoder(w), "["
	for d.More() {
		var fields map[string]any
		if err := d.Decode(&fields); err != nil {
			return fmt.Errorf("read the list of pods: %w", err)
		}
		one := parsePod(fields)
		if !p.shows(one) {
			continue
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		separator = ","
		p.names.prepare(one)
		if err := encoder.Encode(one.fields); err != nil {
			return err
		}
	}
	if separator == "[" {
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
	}
	if err := expect(d, ']'); err != nil {
		return err
	}
	_, err := io.WriteString(w, "]")
	return err
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	switch got, err := d.Token(); {
	case err != nil:
		return fmt.Errorf("read the list of pods: %w", err)
	case got != want:
		return fmt.Errorf("read the list of pods: expected %q, got %v", want, got)
	}
	return nil
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
