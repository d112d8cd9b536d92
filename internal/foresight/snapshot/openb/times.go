package openb

import (
	"io"
	"time"
)

// TimesNote is about pods with times.
const TimesNote = "openb: pods have the times of the trace; each one ends as long after its placement as in the trace; the " +
	"nodes on which they ran are not known"

// Changes calls do with the pods' namespace, and change with each pod in a list when it is created,
// when it is scheduled and when it is removed, with the time since the trace's beginning. The calls
// are in the pods' order.
func Changes(
	r io.Reader, do func(object map[string]any) error, change func(at time.Duration, gone bool, pod map[string]any) error,
) error {
	if err := do(namespace()); err != nil {
		return err
	}
	return eachRow(r, podColumns(), len(podColumns()), func(row row) error {
		created, err := row.number("creation_time")
		if err != nil {
			return err
		}
		at := func(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }
		step := func(seconds int64, gone bool, status map[string]any) error {
			pod, err := row.pod()
			if err != nil {
				return err
			}
			pod["status"] = status
			if metadata, ok := pod["metadata"].(map[string]any); ok {
				metadata["uid"] = "openb-" + row["name"]
			}
			return change(at(seconds), gone, pod)
		}
		if err := step(created, false, map[string]any{"phase": "Pending"}); err != nil {
			return err
		}
		last, end := created, map[string]any{"phase": "Pending"} // it was never scheduled
		if row["scheduled_time"] != "" {
			if end["phase"] = "Succeeded"; row["pod_phase"] == "Failed" {
				end["phase"] = "Failed"
			}
			scheduled, err := row.number("scheduled_time")
			if err != nil {
				return err
			}
			last = max(scheduled, created)
			if err := step(last, false, running()); err != nil {
				return err
			}
		}
		if row["deletion_time"] == "" {
			return nil
		}
		deleted, err := row.number("deletion_time")
		if err != nil {
			return err
		}
		return step(max(deleted, last), true, end)
	})
}

// running is the status of a pod that is scheduled. Its node is not known.
func running() map[string]any {
	return map[string]any{"phase": "Running", "conditions": []any{
		map[string]any{"type": "PodScheduled", "status": "True"},
	}}
}
