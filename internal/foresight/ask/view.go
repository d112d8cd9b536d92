package ask

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// object is a Kubernetes object as decoded JSON.
type object = map[string]any

// view is what a scheduler sees: the live cluster without its pending pods, and the objects of one
// question.
type view struct {
	*readonly.Proxy
	// profile is a profile of the scheduler. It is set before the scheduler's first request.
	profile string

	mu sync.Mutex // of everything below
	// watches are the scheduler's open watches, and versions the last resource version in each, by
	// path.
	watches  map[string]*watch
	versions map[string]string
	// reads counts how often the scheduler has begun to read all pods.
	reads int
	// pods are the cluster's pods, by namespace and name.
	pods map[string]livePod
	// heard is when the API server last sent something about the pods.
	heard time.Time
	// asked is the question that the scheduler works on. It is nil if there is none.
	asked *asked
}

// livePod is a pod of the cluster.
type livePod struct{ uid, node string }

// watch is an open watch of the scheduler.
type watch struct {
	to    io.Writer
	flush func()
	// synced is set when the scheduler has all initial objects.
	synced bool
}

// newView returns the view of the cluster of a configuration.
func newView(cfg *rest.Config, log *zap.Logger) (v *view, err error) {
	v = &view{watches: map[string]*watch{}, versions: map[string]string{}, pods: map[string]livePod{}}
	v.Proxy, err = readonly.New(cfg, log, v)
	return v, err
}

// collection returns the resource whose objects in all namespaces have a path, such as pods or
// replicasets.apps. ok is false for other paths.
func collection(path string) (resource string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) == 3 && parts[0] == "api":
		return parts[2], true
	case len(parts) == 4 && parts[0] == "apis":
		return parts[3] + "." + parts[1], true
	}
	return "", false
}

// addable reports whether a question may add objects of a resource, so that its watches pass
// through the view.
func addable(resource string) bool {
	for _, kind := range snapshot.Kinds() {
		if kind.GroupResource() == resource {
			return true
		}
	}
	return strings.HasPrefix(resource, "podgroups.")
}

// Read implements [readonly.Handler].
func (v *view) Read(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	resource, ok := collection(r.URL.Path)
	switch {
	case resource == "pods" && !strings.Contains(query.Get("fieldSelector"), "status.phase!="):
		return false // not of the scheduler's own informer
	case ok && readonly.IsWatch(query) && addable(resource):
		v.Edit(w, r, query, func(from io.Reader) error { return v.watch(w, r, query, from) })
	case resource == "pods":
		v.Edit(w, r, query, func(from io.Reader) error { return v.list(w, query, from) })
	default:
		return false
	}
	return true
}

// list passes the list of the pods with a node.
func (v *view) list(w http.ResponseWriter, query url.Values, from io.Reader) error {
	v.mu.Lock()
	if query.Get("continue") == "" {
		v.reads++
		clear(v.pods)
	}
	v.mu.Unlock()
	return readonly.EditList(w, from, func(map[string]any) {}, func(fields map[string]any) map[string]any {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.heard = time.Now()
		if !v.pod("ADDED", fields) {
			return nil
		}
		return fields
	})
}

// watch passes a watch, between whose events the view adds those of a question.
func (v *view) watch(w http.ResponseWriter, r *http.Request, query url.Values, from io.Reader) error {
	path, initial := r.URL.Path, query.Get("sendInitialEvents") == "true"
	c := http.NewResponseController(w)
	opened := &watch{to: w, flush: func() { _ = c.Flush() }, synced: !initial} // the next write fails if it is gone
	v.mu.Lock()
	v.watches[path] = opened
	if version := query.Get("resourceVersion"); version != "" {
		v.versions[path] = version
	}
	if path == readonly.PodsPath {
		v.heard = time.Now()
		if initial {
			v.reads++
			clear(v.pods)
		}
	}
	opened.flush()
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.watches[path] == opened {
			delete(v.watches, path)
		}
	}()
	d := json.NewDecoder(from)
	d.UseNumber()
	for {
		var event struct {
			Type   string
			Object object
		}
		switch err := d.Decode(&event); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		if err := v.pass(path, opened, event.Type, event.Object); err != nil {
			return err
		}
	}
}

// initialEventsEnd is the annotation on the bookmark that ends a watch's initial events.
const initialEventsEnd = "k8s.io/initial-events-end"

// pass passes an event of the API server to the scheduler.
func (v *view) pass(path string, to *watch, kind string, o object) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	metadata := child(o, "metadata")
	if version := text(metadata, "resourceVersion"); version != "" && kind != "ERROR" {
		v.versions[path] = version
	}
	if kind == "BOOKMARK" && text(child(metadata, "annotations"), initialEventsEnd) == "true" {
		to.synced = true
	}
	if path == readonly.PodsPath {
		v.heard = time.Now()
		if kind != "BOOKMARK" && kind != "ERROR" && !v.pod(kind, o) {
			return nil
		}
	}
	delete(metadata, "managedFields")
	return to.write(kind, o)
}

// pod remembers a pod of the cluster, and reports whether the scheduler sees its event. v is
// locked.
func (v *view) pod(kind string, fields object) bool {
	metadata := child(fields, "metadata")
	delete(metadata, "managedFields") // half of the text, and no scheduler reads it
	key := text(metadata, "namespace") + "/" + text(metadata, "name")
	p := livePod{uid: text(metadata, "uid"), node: text(child(fields, "spec"), "nodeName")}
	if kind == "DELETED" {
		delete(v.pods, key)
	} else {
		v.pods[key] = p
	}
	if v.asked != nil && v.asked.hides(kind, p.uid, fields) {
		return false
	}
	return p.node != ""
}

func (w *watch) write(kind string, o object) error {
	line, err := json.Marshal(map[string]any{"type": kind, "object": o})
	if err != nil {
		return err
	}
	if _, err := w.to.Write(append(line, '\n')); err != nil {
		return err
	}
	w.flush()
	return nil
}

// synced reports whether the scheduler watches pods, and how many pods with a node it knows.
func (v *view) synced() (ok bool, bound int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.pods {
		if p.node != "" {
			bound++
		}
	}
	w := v.watches[readonly.PodsPath]
	return w != nil && w.synced, bound
}

// age returns an upper bound on the age of the pods in the view.
func (v *view) age() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Since(v.heard)
}

func child(fields object, name string) object {
	c, _ := fields[name].(object)
	return c
}

func text(fields object, name string) string {
	s, _ := fields[name].(string)
	return s
}
