package simulate

import (
	"context"
	"errors"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// load creates the snapshot's objects, except for the pods to schedule.
func (r *Run) load(ctx context.Context) (err error) {
	if r.kube, err = kubernetes.NewForConfig(r.Config()); err != nil {
		return err
	}
	if r.Loader, err = load.New(ctx, r.Config(), r.server, r.Session.Log); err != nil {
		return err
	}
	err = r.Options.Snapshot.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
		return r.loadOne(ctx, kind, version, o)
	})
	if err = errors.Join(r.Loader.Wait(ctx), err); err != nil {
		return err
	}
	if err := requireNodes(r.Options.Scenario, r.nodes); err != nil {
		return err
	}
	if err := r.loadAdded(ctx); err != nil {
		return err
	}
	if err := load.Others(ctx, r.Config(), r.custom, r.customKinds...); err != nil {
		return err
	}
	if err := r.Options.Observer.Loaded(ctx, r); err != nil {
		return err
	}
	if err := r.makeClaims(); err != nil {
		return err
	}
	scenario.Sort(r.Waiting)
	r.Report.Notes = append(r.Report.Notes, r.Options.Scenario.Notes...)
	if r.left > 0 {
		r.note("%s", plural.Phrase(r.left, "pending pod of the snapshot is left out",
			"pending pods of the snapshot are left out"))
	}
	if r.lost > 0 {
		r.note("%s", plural.Phrase(r.lost, "pod is left out: the snapshot does not have its node",
			"pods are left out: the snapshot does not have their nodes"))
	}
	for _, refused := range r.Loader.Refused() {
		r.note("%s", refused)
	}
	r.noteQuotas()
	r.noteDevices()
	for resource, n := range r.Loader.Skipped() {
		r.note("%d %s are not loaded: %s does not serve them as in the snapshot", n, resource, r.Options.Scheduler.Release)
	}
	slices.Sort(r.Report.Notes)
	return nil
}

// loadOne creates an object now or keeps it for later.
func (r *Run) loadOne(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any) error {
	key, err := kind.Key(o)
	if err != nil {
		return err
	}
	if kind.External {
		r.addCustom(kind, o)
		return nil
	}
	given, refused := o, ""
	if kind.Name == "Pod" || kind.Name == "Node" {
		if o, refused, err = r.Admit(ctx, kind, version, o); err != nil {
			return err
		}
	}
	original := o
	o, action := r.Options.Scenario.Apply(kind, o)
	if action == scenario.Keep && r.isLost(kind, original) {
		r.lost++
		action = scenario.Drop
	}
	if action == scenario.Drop {
		r.drop(kind, key, original)
		return nil
	}
	if action == scenario.Schedule && refused != "" {
		r.refuse(o, refused)
		return nil
	}
	if kind.Name == "Pod" {
		r.attachments.AddPod(original, action != scenario.Schedule)
	} else if r.attachments.Removes(kind, original) {
		return nil
	}
	if err := r.count(kind, key, original, action); err != nil {
		return err
	}
	if err := r.budgets.add(kind, version, original); err != nil {
		return err
	}
	if kind.Name == "Pod" && r.Loader.Resource(claimKind()).Empty() { // admission has dropped the claims
		r.devices.add(kind, key, given, action)
	} else {
		r.devices.add(kind, key, o, action)
	}
	switch action {
	case scenario.Schedule:
		if scenario.NodeOf(original) != "" {
			r.moved[snapshot.UID(o)] = true
		}
		return r.wait(key, "", o, nil)
	case scenario.Leave:
		r.left++
	default:
		r.remember(kind, key, o)
	}
	if r.Options.Scenario.IsTemplate != nil && r.Options.Scenario.IsTemplate(kind, original) {
		r.templates = append(r.templates, scenario.Object{Kind: kind, Version: version, Fields: original})
	}
	return r.createOrDefer(ctx, kind, version, key, o)
}

// remember keeps the facts about an object that later objects and notes depend on.
func (r *Run) remember(kind *snapshot.Kind, key string, o map[string]any) {
	switch kind.Name {
	case "Namespace":
		r.namespaces[key] = true
	case "ResourceQuota":
		namespace, _ := scenario.NameOf(o)
		r.quotas[namespace] = append(r.quotas[namespace], key)
	case "StorageClass":
		r.waitingClasses[key] = o["volumeBindingMode"] == string(storagev1.VolumeBindingWaitForFirstConsumer)
	}
}

// createOrDefer creates an object now or, if it refers to a waiting pod, after that.
func (r *Run) createOrDefer(
	ctx context.Context, kind *snapshot.Kind, version, key string, o map[string]any,
) (err error) {
	if o = r.renewal().Claim(kind, o); o == nil {
		delete(r.devices.claims, key)
		return nil
	}
	for _, uid := range scenario.References(kind, o) {
		if list, ok := r.deferred[uid]; ok {
			r.deferred[uid], err = deferObject(list, kind, version, o)
			return err
		}
	}
	return r.Loader.Add(ctx, kind, version, o)
}

// addCustom keeps a custom resource, which is created after the others.
func (r *Run) addCustom(kind *snapshot.Kind, o map[string]any) {
	r.custom = append(r.custom, o)
	if !slices.Contains(r.customKinds, kind) {
		r.customKinds = append(r.customKinds, kind)
	}
}

// isLost reports whether a pod is on a node that does not exist. The scheduler would count the node
// in its cache, and a cluster removes the pod (pkg/controller/podgc).
func (r *Run) isLost(kind *snapshot.Kind, o map[string]any) bool {
	node := scenario.NodeOf(o)
	return kind.Name == "Pod" && node != "" && !r.nodes[node]
}

// drop remembers an object that is not created.
func (r *Run) drop(kind *snapshot.Kind, key string, o map[string]any) {
	switch kind.Name {
	case "Node":
		r.nodes[key] = true
	case "Pod":
		r.devices.ended[snapshot.UID(o)] = true
	}
}

// renewal describes the changes to the pods that were read so far.
func (r *Run) renewal() scenario.Renewal {
	return scenario.Renewal{
		Moved:     func(uid string) bool { return r.moved[uid] },
		Ended:     func(uid string) bool { return r.devices.ended[uid] },
		Waits:     func(class string) bool { return r.waitingClasses[class] },
		Consumers: r.devices.consumers,
	}
}

// wait enqueues a pod for the scheduler, and defers the objects that it owns until it exists.
// created is its place among the pods with its priority. If it is empty, the pod's age decides.
func (r *Run) wait(key, created string, pod map[string]any, owned []scenario.Object) error {
	text, err := snapshot.Encode(pod)
	if err != nil {
		return err
	}
	w := scenario.NewWaiting(key, pod, text)
	if created != "" {
		w.Created = created
	}
	r.Waiting, r.waits[key] = append(r.Waiting, w), true
	if w.UID == "" {
		return nil
	}
	list := []deferredObject{}
	for _, o := range owned {
		if list, err = deferObject(list, o.Kind, o.Version, o.Fields); err != nil {
			return err
		}
	}
	r.deferred[w.UID] = list
	return nil
}

// deferObject keeps an object for later. Objects that refer to it come later too.
func deferObject(list []deferredObject, kind *snapshot.Kind, version string,
	o map[string]any) ([]deferredObject, error) {
	text, err := snapshot.Encode(o)
	if err != nil {
		return nil, err
	}
	return append(list, deferredObject{kind: kind, version: version, object: text}), nil
}

// deferredObject is an object that is created after the pod that it refers to.
type deferredObject struct {
	kind    *snapshot.Kind
	version string
	object  []byte
}
