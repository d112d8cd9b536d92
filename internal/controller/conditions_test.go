package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// newRun returns a reconciliation of an object of generation 2, which was not deployed yet.
func newRun() *run {
	u := &run{reconciler: &reconciler{o: Options{Resync: time.Hour}}, object: &v1alpha1.CustomScheduler{}}
	u.object.Name, u.object.Namespace, u.object.Generation = "a", "ns", 2
	return u
}

// newDeployedRun returns a reconciliation of an object whose generation 2 is deployed and verified.
func newDeployedRun(t *target) *run {
	u := newRun()
	u.object.Status.ObservedGeneration, u.object.Status.Release = 2, t.status()
	u.describeDeployed(&verify.Result{Node: "node-1", Seconds: 0.5})
	u.set(v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed", "")
	return u
}

// conditions returns the conditions of an object, "Type=Status Reason" each, sorted. All of them
// have to be of the object's generation.
func (u *run) conditions(t *testing.T) string {
	t.Helper()
	var list []string
	for _, c := range u.object.Status.Conditions {
		list = append(list, c.Type+"="+string(c.Status)+" "+c.Reason)
		if c.ObservedGeneration != u.object.Generation {
			t.Errorf("condition %s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (u *run) message(condition string) string {
	if c := meta.FindStatusCondition(u.object.Status.Conditions, condition); c != nil {
		return c.Message
	}
	return ""
}

// The message of Ready is the cause of the state.
func TestConditionsAtTheEndOfAReconciliation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			good    = "CredentialsValid=True ServiceAccountToken, Drifted=False Unchanged, "
			trusted = "Verified=True PodBound"
		)
		cause := errors.New("the cause")
		at := func(after time.Duration) time.Time { return time.Now().Add(after) }
		for name, c := range map[string]struct {
			deployed, unverified bool
			failed               error
			missing              string
			want, message        string
			next                 time.Duration
			fails                bool
		}{
			"deployed": {deployed: true, next: time.Hour + time.Second, message: "has bound a pod",
				want: good + "Ready=True Deployed, Reconciling=False Deployed, Stalled=False Deployed, " + trusted},
			"no replica": {deployed: true, missing: "no replica", next: time.Hour + time.Second, message: "no replica",
				want: good + "Ready=False NotAvailable, Reconciling=False NotAvailable, Stalled=False Deployed, " + trusted},
			"no release after a change that failed": {deployed: true, unverified: true, next: time.Hour + time.Second,
				message: "the last change failed",
				want: good + "Ready=False NotVerified, Reconciling=False NotVerified, Stalled=False Deployed, " +
					"Verified=False DeployFailed"},
			"no release": {missing: "no replica", next: time.Hour + time.Second, message: "no scheduler is deployed",
				want: "Ready=False NoImageForRelease, Reconciling=False NoImageForRelease, Stalled=False Deployed"},
			"transient error": {deployed: true, failed: cause, fails: true,
				want: good + "Ready=True Deployed, Reconciling=True Retrying, Stalled=False Retrying, " + trusted},
			"transient error before the first deployment": {failed: cause, fails: true, message: "the cause",
				want: "Ready=False Retrying, Reconciling=True Retrying, Stalled=False Retrying"},
			"invalid": {failed: &stalled{reason: "InvalidSpec", err: cause}, message: "the cause", next: time.Hour + time.Second,
				want: "Ready=False InvalidSpec, Reconciling=False InvalidSpec, Stalled=True InvalidSpec"},
			"invalid change": {deployed: true, failed: &stalled{reason: "InvalidSpec", err: cause}, message: "the cause",
				next: time.Hour + time.Second,
				want: good + "Ready=False InvalidSpec, Reconciling=False InvalidSpec, Stalled=True InvalidSpec, " + trusted},
			"unreadable index": {deployed: true, failed: &stalled{reason: "ReleasesUnreadable", err: cause}, fails: true,
				message: "the cause", want: good + "Ready=False ReleasesUnreadable, Reconciling=False ReleasesUnreadable, " +
					"Stalled=True ReleasesUnreadable, " + trusted},
			"first deployment": {failed: &stalled{reason: "DeployFailed", err: cause, next: at(40 * time.Second)},
				message: "the cause", next: 40 * time.Second,
				want: "CredentialsValid=False DeployFailed, Ready=False DeployFailed, Reconciling=False DeployFailed, " +
					"Stalled=True DeployFailed, Verified=False DeployFailed"},
			"later deployment": {deployed: true, message: "the cause", next: 40 * time.Second,
				failed: &stalled{reason: "DeployFailed", err: cause, next: at(40 * time.Second)},
				want: good + "Ready=False DeployFailed, Reconciling=False DeployFailed, " +
					"Stalled=True DeployFailed, Verified=False DeployFailed"},
			"the next attempt is due": {failed: &stalled{reason: "OwnedByOther", err: cause, next: at(-time.Minute)},
				message: "the cause", next: time.Second,
				want: "CredentialsValid=False OwnedByOther, Ready=False OwnedByOther, Reconciling=False OwnedByOther, " +
					"Stalled=True OwnedByOther, Verified=False OwnedByOther"},
			"refused image": {deployed: true, failed: &stalled{reason: imageRefused, err: cause, next: at(time.Minute)},
				message: "the cause", next: time.Minute,
				want: good + "Ready=False ImageRefused, Reconciling=False ImageRefused, Stalled=True ImageRefused, " +
					"Verified=False ImageRefused"},
			"too many repairs": {deployed: true, failed: &stalled{reason: repairedTooOften, err: cause, next: at(time.Minute)},
				message: "the cause", next: time.Minute,
				want: good + "Ready=False RepairedTooOften, Reconciling=False RepairedTooOften, " +
					"Stalled=True RepairedTooOften, " + trusted},
		} {
			u := newRun()
			if c.deployed {
				u = newDeployedRun(&target{SchedulerRelease: &v1alpha1.SchedulerRelease{}})
			}
			if c.unverified {
				u.set(v1alpha1.ConditionVerified, metav1.ConditionFalse, "DeployFailed", "")
			}
			u.object.Status.ObservedGeneration = 1
			result, err := u.conclude(c.failed, c.missing)
			if got := u.conditions(t); got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
			}
			if got := u.message(v1alpha1.ConditionReady); !strings.Contains(got, c.message) {
				t.Errorf("%s: Ready has the message %q, want %q", name, got, c.message)
			}
			if result.RequeueAfter != c.next || c.fails != errors.Is(err, cause) || !c.fails && err != nil {
				t.Errorf("%s: next in %s, %v", name, result.RequeueAfter, err)
			}
			if got := u.object.Status.ObservedGeneration; (got == 2) != errors.As(c.failed, new(*stalled)) {
				t.Errorf("%s: observed generation %d", name, got)
			}
		}
	})
}

func TestConditionsOfTheRelease(t *testing.T) {
	release := func(name string) *target {
		return &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Release: name, Image: "s:" + name}}
	}
	missing := &v1alpha1.MissingReleaseError{Minor: "1.30", Minors: []string{"1.28", "1.29"}}
	same := Servers{"v1.29.3", "v1.29.3"}
	for name, c := range map[string]struct {
		choice           choice
		servers          Servers
		deployed         bool
		want             string
		matched, upgrade []string
	}{
		"matched": {choice: choice{deploy: release("v1.29.1")}, servers: same,
			want: "ReleaseMatched=True Matched, UpgradeAvailable=False UpToDate", matched: []string{"v1.29.3"}},
		"servers of two minors": {choice: choice{deploy: release("v1.28.7")}, servers: Servers{"v1.28.7", "v1.29.3"},
			want:    "ReleaseMatched=True ServersMixed, UpgradeAvailable=False UpToDate",
			matched: []string{"v1.28.7 and v1.29.3", "older"}},
		"missing": {choice: choice{missing: missing}, servers: same,
			want:    "ReleaseMatched=False NoImageForRelease, UpgradeAvailable=False UpToDate",
			matched: []string{missing.Error() + "; " + missing.Hint()}},
		"missing after a deployment": {choice: choice{missing: missing}, servers: same, deployed: true,
			want:    "ReleaseMatched=False NoImageForRelease, UpgradeAvailable=False UpToDate",
			matched: []string{"the scheduler of v1.29.1 stays", missing.Hint()}},
		"Manual": {choice: choice{deploy: release("v1.28.7"), waiting: release("v1.29.1")}, servers: same,
			want:    "ReleaseMatched=False UpgradePolicyManual, UpgradeAvailable=True UpgradePolicyManual",
			matched: []string{"v1.29.3", "spec.upgradePolicy"}, upgrade: []string{"v1.29.1, image s:v1.29.1"}},
	} {
		u := newRun()
		u.servers = c.servers
		if c.deployed {
			u.object.Status.Release = release("v1.29.1").status()
		}
		u.describeChoice(&c.choice)
		if got := u.conditions(t); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		for condition, parts := range map[string][]string{
			v1alpha1.ConditionReleaseMatched: c.matched, v1alpha1.ConditionUpgradeAvailable: c.upgrade,
		} {
			for _, part := range parts {
				if got := u.message(condition); !strings.Contains(got, part) {
					t.Errorf("%s: %s has the message %q, want %q", name, condition, got, part)
				}
			}
		}
	}
}

// The former scheduler runs until the new one is ready. A repair is reported as such.
func TestConditionsDuringADeployment(t *testing.T) {
	u := newRun()
	u.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec", "")
	u.progress("Deploying", "")
	const before = "Ready=False Deploying, Reconciling=True Deploying, Stalled=False Deploying"
	if got := u.conditions(t); got != before {
		t.Errorf("the first:\ngot  %s\nwant %s", got, before)
	}
	u.set(v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed", "")
	u.set(v1alpha1.ConditionDrifted, metav1.ConditionTrue, "Changed", "")
	u.progress("Deploying", "")
	u.describeDeployed(&verify.Result{Node: "node-1", Seconds: 1.5})
	const after = "CredentialsValid=True ServiceAccountToken, Drifted=False Repaired, Ready=True Deployed, " +
		"Reconciling=True Deploying, Stalled=False Deploying, Verified=True PodBound"
	if got := u.conditions(t); got != after {
		t.Errorf("a repair:\ngot  %s\nwant %s", got, after)
	}
	if got := u.message(v1alpha1.ConditionVerified); got != "a pod was bound to node node-1 after 1.500 s" {
		t.Errorf("Verified has the message %q", got)
	}
}

// The API server refuses longer messages, and invalid UTF-8.
func TestMessagesAreOneShortLineWithTheHints(t *testing.T) {
	err := problem.Errorf("write it in\none line", "first\n\tsecond  third")
	if got := describe(err); got != "first second third; write it in one line" {
		t.Errorf("got %q", got)
	}
	letters := strings.Repeat("a", maxMessage)
	for name, c := range map[string]struct{ text, want string }{
		"the longest":            {letters, letters},
		"longer":                 {letters + "a", letters + "…"},
		"cut within a character": {letters[1:] + "é", letters[1:] + "…"},
	} {
		if got := describe(errors.New(c.text)); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %d bytes, %q at the end", name, len(got), got[len(got)-8:])
		}
	}
}
