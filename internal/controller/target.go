package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// target is a release in an index that is deployed for an object.
type target struct {
	*v1alpha1.SchedulerRelease
	server string
	// checksum identifies the release in the index, with its configuration and permissions.
	checksum string
}

func newTarget(release *v1alpha1.SchedulerRelease, server string) (*target, error) {
	text, err := json.Marshal(release)
	if err != nil {
		return nil, fmt.Errorf("encode release %s of the index: %w", release.Release, err)
	}
	sum := sha256.Sum256(text)
	return &target{SchedulerRelease: release, server: server, checksum: hex.EncodeToString(sum[:8])}, nil
}

// bind adds the bounds to the checksum, which identifies the target: with other bounds it is
// deployed again, and so verified.
func (t *target) bind(b session.Bounds) {
	if b.Key == "" && len(b.Repositories) == 0 {
		return
	}
	sum := sha256.Sum256(fmt.Append(nil, t.checksum, b.Key, b.Repositories))
	t.checksum = hex.EncodeToString(sum[:8])
}

// status returns the release for an object's status.
func (t *target) status() *v1alpha1.DeployedRelease {
	return &v1alpha1.DeployedRelease{Server: t.server, Scheduler: t.Release, Image: t.Image, Checksum: t.checksum}
}

// isDeployed reports whether the target is the release in the status.
func (t *target) isDeployed(status *v1alpha1.DeployedRelease) bool {
	return status != nil && status.Image == t.Image && status.Checksum == t.checksum
}

// releases returns an object's release index. An object without one has one release, or follows the
// API servers with the release's own image.
func (r *reconciler) releases(
	ctx context.Context, object *v1alpha1.CustomScheduler, servers Servers,
) (*v1alpha1.SchedulerReleases, error) {
	given := object.Spec.Releases
	switch {
	case given == nil && object.Spec.UsesOwnImage() && !deploy.IsChosen(object.Spec.Source.Branch):
		return ownReleases(object, servers)
	case given == nil:
		release, err := versions.Parse(object.Spec.Source.Branch)
		if err != nil {
			return nil, fmt.Errorf("spec.source.branch: %w", err)
		}
		return &v1alpha1.SchedulerReleases{Releases: []v1alpha1.SchedulerRelease{{
			Minor: release.MinorString(), Release: release.String(), Image: object.Spec.Image.Reference,
		}}}, nil
	case len(given.Items) > 0:
		return &v1alpha1.SchedulerReleases{Releases: given.Items}, nil
	}
	text, name, err := r.readIndex(ctx, object)
	if err != nil {
		return nil, err
	}
	index, err := v1alpha1.DecodeReleases(text)
	if err == nil {
		err = index.Validate()
	}
	if err != nil {
		return nil, problem.Invalidf("", "read the release index in %s: %w", name, err)
	}
	return index, nil
}

// ownReleases returns the index of an object that names no image: the release of the oldest API
// server and the deployed one, which the policy Manual keeps.
func ownReleases(object *v1alpha1.CustomScheduler, servers Servers) (*v1alpha1.SchedulerReleases, error) {
	release, err := versions.FromServer(servers.Oldest)
	if err != nil {
		return nil, err
	}
	index := &v1alpha1.SchedulerReleases{
		Releases: []v1alpha1.SchedulerRelease{{Minor: release.MinorString(), Release: release.String()}}}
	deployed := object.Status.Release
	if deployed == nil || deployed.Image != "" || deployed.Scheduler == release.String() {
		return index, nil
	}
	if release, err = versions.Parse(deployed.Scheduler); err == nil {
		index.Releases = append(index.Releases,
			v1alpha1.SchedulerRelease{Minor: release.MinorString(), Release: release.String()})
	}
	return index, err
}

// isOf reports whether a status is about a release of the index. The release's own image has no
// name.
func isOf(deployed *v1alpha1.DeployedRelease, r *v1alpha1.SchedulerRelease) bool {
	return deployed != nil && deployed.Image == r.Image && (r.Image != "" || deployed.Scheduler == r.Release)
}

// readIndex returns the index's text from a ConfigMap or a registry, and its location.
func (r *reconciler) readIndex(
	ctx context.Context, object *v1alpha1.CustomScheduler,
) (text []byte, name string, err error) {
	given := object.Spec.Releases
	if given.ConfigMap == nil {
		if err = deploy.CheckRepositories(r.session.Bounds, given.OCI); err != nil {
			return nil, given.OCI, err
		}
		text, err = pack.ReadReleases(ctx, given.OCI, given.PublicKey)
		return text, given.OCI, err
	}
	found, key := &corev1.ConfigMap{}, given.ConfigMap.KeyOrDefault()
	name = "ConfigMap/" + object.Namespace + "/" + given.ConfigMap.Name
	if err := r.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: given.ConfigMap.Name}, found); err != nil {
		return nil, name, fmt.Errorf("read the release index: %w", err)
	}
	content, ok := found.Data[key]
	if !ok {
		return nil, name, problem.Invalidf("", "read the release index: %s has no key %s", name, key)
	}
	return []byte(content), name, nil
}

// choice is the release to deploy, with the reason if it is not the newest one for the API server.
type choice struct {
	// deploy is the release to deploy or to keep. It is nil if there is none, or if the index does
	// not have the deployed one any more: then nothing is changed.
	deploy *target
	// missing is the reason why the index has no release for the API server, or nil.
	missing *v1alpha1.MissingReleaseError
	// waiting is an upgrade that the policy Manual leaves to the user, or nil.
	waiting *target
}

// choose chooses the release in the index for the oldest API server.
func choose(object *v1alpha1.CustomScheduler, index *v1alpha1.SchedulerReleases, servers Servers) (*choice, error) {
	c := &choice{}
	wanted, err := index.For(servers.Oldest)
	if errors.As(err, &c.missing) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	deployed := object.Status.Release
	manual := object.Spec.UpgradePolicy == v1alpha1.UpgradeManual && deployed != nil
	if wanted != nil && (!manual || isOf(deployed, wanted)) {
		c.deploy, err = newTarget(wanted, servers.Oldest)
		return c, err
	}
	if wanted != nil {
		if c.waiting, err = newTarget(wanted, servers.Oldest); err != nil {
			return nil, err
		}
	}
	at := slices.IndexFunc(index.Releases, func(r v1alpha1.SchedulerRelease) bool { return isOf(deployed, &r) })
	if at >= 0 {
		c.deploy, err = newTarget(&index.Releases[at], deployed.Server)
	}
	return c, err
}

// request returns the request that `pmk-sched deploy` would read from a file, for a release in the
// index: the object's configuration takes precedence over the release's.
func (t *target) request(object *v1alpha1.CustomScheduler) (*v1alpha1.CustomScheduler, error) {
	release, err := versions.Parse(t.Release)
	if err != nil {
		return nil, err
	}
	rules, err := versions.Select(release)
	if err != nil {
		return nil, err
	}
	made := &v1alpha1.CustomScheduler{ObjectMeta: metav1.ObjectMeta{
		Name: object.Name, Namespace: object.Namespace,
		Annotations: map[string]string{v1alpha1.AnnotationOwner: deploy.OwnerName(object)},
	}}
	made.Spec = object.DeepCopy().Spec
	s := &made.Spec
	s.Releases, s.UpgradePolicy, s.DeletionPolicy = nil, "", ""
	t.ApplyTo(s)
	if !deploy.IsChosen(s.Credentials) {
		s.Credentials = deploy.CredentialsServiceAccount // the controller has no files of a node
	}
	s.Configuration.PolicyConfigMap = s.Configuration.PolicyConfigMap && rules.Policy
	s.Args, _, err = versions.FitArgs(s.Args, release)
	return made, err
}
