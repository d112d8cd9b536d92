package ask

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// streamInterval is the interval at which a closed watch of the scheduler is looked for again.
const streamInterval = 10 * time.Millisecond

// inject shows an event about a question's object to the scheduler. It reports whether the
// scheduler watches the objects of this kind.
func (v *view) inject(ctx context.Context, resource, kind string, o object) (bool, error) {
	for {
		path, watching, done, err := v.tryInject(resource, kind, o)
		if done || err != nil || !watching {
			return watching, err
		}
		if err := clock.Sleep(ctx, streamInterval); err != nil {
			return true, errors.Join(err, errors.New("the scheduler does not watch "+path))
		}
	}
}

// tryInject shows an event if the scheduler's watch is open.
func (v *view) tryInject(resource, kind string, o object) (path string, watching, done bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	path, watching = v.pathOf(resource)
	if !watching {
		return "", false, false, nil
	}
	w := v.watches[path]
	if w == nil || !w.synced {
		return path, true, false, nil
	}
	return path, true, true, w.write(kind, v.stamped(path, o))
}

// pathOf returns the path at which the scheduler watches a resource. v is locked.
func (v *view) pathOf(resource string) (path string, ok bool) {
	for path := range v.versions {
		if found, _ := collection(path); found == resource {
			return path, true
		}
	}
	return "", false
}

// stamped returns a copy of an object as it is in the watch of a path. v is locked.
func (v *view) stamped(path string, o object) object {
	o = maps.Clone(o)
	o["apiVersion"] = apiVersionOf(path)
	metadata := maps.Clone(child(o, "metadata"))
	metadata["resourceVersion"] = v.versions[path]
	o["metadata"] = metadata
	return o
}

// apiVersionOf returns the apiVersion of the objects at a collection's path.
func apiVersionOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		return parts[1]
	}
	return parts[1] + "/" + parts[2]
}
