//go:build linux

package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// changeQuota changes the min and max of a team, and waits until the scheduler knows them.
func (w *world) changeQuota(ctx context.Context) func() {
	changed := w.teams[fmt.Sprintf("%s-%c", w.name, 'a'+w.random.IntN(4))]
	if changed.changing {
		return nil
	}
	least, most := w.newLimits()
	changed.changing = true
	changed.limits = append(changed.limits, limit{max: most})
	w.note(fmt.Sprintf("quota of %s gets min %v, max %v", changed.namespace, least, most), changed.namespace)
	return func() {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"min": quantities(least), "max": quantities(most)}})
		if err != nil {
			panic(err)
		}
		written, err := w.quotas.Namespace(changed.namespace).Patch(ctx, quotaName, types.MergePatchType, patch,
			metav1.PatchOptions{})
		if err != nil {
			w.tolerate(ctx, err, "change the quota of "+changed.namespace)
			return
		}
		from, err := strconv.ParseInt(written.GetResourceVersion(), 10, 64)
		if err != nil {
			panic(err)
		}
		w.background.Add(1)
		go func() {
			defer w.background.Done()
			known := w.awaitLimits(ctx, changed.namespace, most)
			w.mu.Lock()
			defer w.mu.Unlock()
			last := len(changed.limits) - 1
			changed.limits[last].from, changed.limits[last-1].until, changed.changing = from, known, false
		}()
	}
}

// awaitLimits waits until the scheduler knows a max, and returns the resource version of then.
func (w *world) awaitLimits(ctx context.Context, namespace string, most sums) (version int64) {
	wanted := map[string]bool{}
	for name, amount := range most {
		value := float64(amount)
		if name == corev1.ResourceCPU {
			value /= 1000
		}
		text := strconv.FormatFloat(value, 'g', -1, 64)
		wanted[fmt.Sprintf("\npmk_sched_elasticquota_amount{kind=%q,quota=%q,resource=%q} %s\n", "max",
			namespace+"/"+quotaName, name, text)] = true
	}
	_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		metrics, _ := controlplane.ReadMetrics(ctx, w.metrics) // none while the scheduler is down
		for line := range wanted {
			if !strings.Contains(string(metrics), line) {
				return false, nil
			}
		}
		version = w.now(ctx)
		return version > 0, nil
	})
	return version
}

// now returns the resource version of the cluster, 0 if the test ends.
func (w *world) now(ctx context.Context) int64 {
	list, err := w.Kube.CoreV1().Pods(w.name).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		w.tolerate(ctx, err, "list pods")
		return 0
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return version
}

// stop ends the scheduler as a kubelet does, or as a crash does.
func (w *world) stop(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	crash := w.chance(2)
	w.note(fmt.Sprintf("the scheduler ends, crash: %t", crash), everything)
	w.mu.Unlock()
	if crash {
		w.scheduler.Kill()
	} else {
		w.scheduler.Stop()
	}
}

// restart starts the scheduler again.
func (w *world) restart(ctx context.Context, t *testing.T) {
	t.Helper()
	w.scheduler.Start()
	version := w.now(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = 0
	w.restarted = version
	w.restarts++
	w.note("the scheduler starts", everything)
}

// everything is the object of lines in the log that concern all objects.
const everything = "*"
