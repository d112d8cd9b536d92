package main

import "github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"

func snapshotTable(h *snapshot.Header) string {
	var p printer
	p.Row("RESOURCE", "OBJECTS", "BYTES")
	for _, r := range h.Resources {
		p.Row(r.GroupResource(), r.Objects, r.Bytes)
	}
	p.Line("\npods: %d bound, %d pending, %d finished", h.Pods.Running, h.Pods.Pending, h.Pods.Finished)
	return p.String()
}
