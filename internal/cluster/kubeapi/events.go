package kubeapi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EventTime returns when an event was last observed. Events of the newer event API have no
// LastTimestamp.
func EventTime(e *corev1.Event) time.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
