package staticpod

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// StateDir is where a node has the lock and the backups.
const StateDir = "/var/lib/pmk-sched"

// backupsDir is where backups are, by time.
const backupsDir = StateDir + "/backups"

// State is how far a replacement has come.
type State string

// States of a backup.
const (
	// Started: a run is at work, or was killed.
	Started State = "started"
	// Replaced: the new scheduler runs and was proven.
	Replaced State = "replaced"
	// Undone: the run failed, and what was there before it is back.
	Undone State = "undone"
	// Restored: the original is back.
	Restored State = "restored"
	// Superseded: a later run took over.
	Superseded State = "superseded"
)

// Backup is one folder below the backups: what was there before a run, and the
// journal of the run.
type Backup struct {
	// ID is the folder's name; a later one sorts after an earlier one.
	ID    string `json:"id"`
	State State  `json:"state"`
	// Step is what was begun last.
	Step    string    `json:"step"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`

	Layout string `json:"layout"`
	// Node, and Pod, the name of its mirror pod.
	Node      string `json:"node"`
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	Container string `json:"container"`
	// SingleFile and HoldsAPI are of the layout: see [Swapper] and [Watch].
	SingleFile bool `json:"singleFile"`
	HoldsAPI   bool `json:"holdsAPI"`
	// Elects says that the scheduler elects its leader with a lease.
	Elects bool `json:"elects"`
	// Hosts and Alone are as in [Watch]; Pinned as in [Want].
	Hosts  []string `json:"hosts,omitempty"`
	Alone  bool     `json:"alone"`
	Pinned bool     `json:"pinned"`
	// Image and Replacement are what was asked for.
	Image       string `json:"image"`
	Replacement string `json:"replacement"`
	// For is what the replacement is for where it is for nothing else.
	For string `json:"for,omitempty"`
	// Rules says that a ClusterRole for plugins was applied.
	Rules bool `json:"rules"`
	// Edited says that the manifest had been edited since an earlier
	// replacement, so that the original lacks that edit.
	Edited bool `json:"edited,omitempty"`
	// ConfigDir and ConfigFile are where the configuration was written.
	ConfigDir  string `json:"configDir,omitempty"`
	ConfigFile string `json:"configFile,omitempty"`
	ConfigHash string `json:"configHash,omitempty"`
	// Files are those that are changed, the manifest first.
	Files []Saved `json:"files"`
	// Copies are kept for a person: the scheduler's kubeconfig and configuration.
	Copies []Saved `json:"copies,omitempty"`

	dir   string
	files Files
}

// Saved is a file that a backup holds.
type Saved struct {
	// Path on the node.
	Path string      `json:"path"`
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	// Name of the copies in the folders original and previous.
	Name string `json:"name"`
	// Original, Previous and Written are hashes: of what restore brings back, of
	// what was there before this run, and of what this run writes.
	Original string `json:"original"`
	Previous string `json:"previous,omitempty"`
	Written  string `json:"written,omitempty"`
}

// Manifest is the manifest's entry.
func (b *Backup) Manifest() *Saved { return &b.Files[0] }

// Dir is the backup's folder on the node.
func (b *Backup) Dir() string { return path.Join(backupsDir, b.ID) }

// Content is what Create copies into a backup.
type Content struct {
	// Original and Previous hold a file for each of Backup.Files.
	Original, Previous []*File
	// Copies holds a file for each of Backup.Copies.
	Copies []*File
	// Written holds what will be written for each of Backup.Files.
	Written [][]byte
}

// Create makes the folder of a backup and writes everything in it; the journal
// comes last, so that a folder with one is whole.
func (b *Backup) Create(files Files, now time.Time, content Content) error {
	b.files, b.State, b.Created = files, Started, now.UTC()
	if err := b.makeDir(); err != nil {
		return err
	}
	for i := range b.Files {
		f := &b.Files[i]
		old := content.Previous[i]
		f.Name, f.Mode, f.UID, f.GID = path.Base(f.Path), old.Mode, old.UID, old.GID
		f.Original, f.Previous, f.Written = Hash(content.Original[i].Data), Hash(old.Data), Hash(content.Written[i])
		err := errors.Join(b.keep("original", f.Name, content.Original[i].Data), b.keep("previous", f.Name, old.Data), b.keep("written", f.Name, content.Written[i]))
		if err != nil {
			return err
		}
	}
	for i := range b.Copies {
		c, file := &b.Copies[i], content.Copies[i]
		c.Name, c.Mode, c.UID, c.GID, c.Original = fmt.Sprintf("%d-%s", i, path.Base(c.Path)), file.Mode, file.UID, file.GID, Hash(file.Data)
		if err := b.keep("copies", c.Name, file.Data); err != nil {
			return err
		}
	}
	if err := b.keep("", "README", []byte(b.readme())); err != nil {
		return err
	}
	return b.Note("back up", Started)
}

func (b *Backup) makeDir() error {
	parent, err := b.files.Resolve(backupsDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return explain("make", backupsDir, err)
	}
	stamp := b.Created.Format("20060102T150405.000000Z")
	b.ID, b.dir = stamp, filepath.Join(parent, stamp)
	return explain("make", b.Dir(), os.Mkdir(b.dir, 0o700))
}

func (b *Backup) keep(folder, name string, data []byte) error {
	dir := filepath.Join(b.dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explain("write", path.Join(b.Dir(), folder), err)
	}
	part, err := writePart(dir, "."+name+"-*", &File{Data: data, Mode: 0o600, UID: os.Geteuid(), GID: os.Getegid()})
	if err == nil {
		err = os.Rename(part, filepath.Join(dir, name))
	}
	if err == nil {
		err = syncDir(dir)
	}
	return explain("write", path.Join(b.Dir(), folder, name), err)
}

// Note writes into the journal which step begins, or what became of the run.
func (b *Backup) Note(step string, state State) error {
	b.Step, b.State, b.Updated = step, state, time.Now().UTC()
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", b.Dir(), err)
	}
	return b.keep("", "journal.json", append(text, '\n'))
}

// Which copy of a file is wanted.
const (
	OriginalCopy = "original"
	PreviousCopy = "previous"
	WrittenCopy  = "written"
)

// Load reads a copy, and fails if it is not what was kept.
func (b *Backup) Load(s *Saved, copy string) (*File, error) {
	at := path.Join(b.Dir(), copy, s.Name)
	data, err := os.ReadFile(filepath.Join(b.dir, copy, s.Name))
	if err != nil {
		return nil, explain("read", at, err)
	}
	want := map[string]string{OriginalCopy: s.Original, PreviousCopy: s.Previous, WrittenCopy: s.Written}[copy]
	if Hash(data) != want {
		return nil, &Error{Err: fmt.Errorf("read %s: it is not what was kept: its hash differs from the journal's", at), Try: "look at the folder " + b.Dir()}
	}
	return &File{Data: data, Mode: s.Mode, UID: s.UID, GID: s.GID}, nil
}

// Backups returns the backups of a node, the newest first. A folder without a
// journal is of a run that was killed before it changed anything: it is passed over.
func Backups(files Files) ([]*Backup, error) {
	parent, err := files.Resolve(backupsDir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain("read", backupsDir, err)
	}
	var list []*Backup
	for _, entry := range slices.Backward(entries) {
		dir := filepath.Join(parent, entry.Name())
		text, err := os.ReadFile(filepath.Join(dir, "journal.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		b := &Backup{}
		if err == nil {
			err = json.Unmarshal(text, b)
		}
		if err != nil || len(b.Files) == 0 {
			return nil, fmt.Errorf("read %s: its journal cannot be read: %w", path.Join(backupsDir, entry.Name()), err)
		}
		b.ID, b.dir, b.files = entry.Name(), dir, files
		list = append(list, b)
	}
	return list, nil
}

// Current returns the newest backup that is not done with: a run that was killed,
// or a replacement that runs. nil: nothing of ours is on the node.
func Current(list []*Backup) *Backup {
	for _, b := range list {
		if b.State == Started || b.State == Replaced {
			return b
		}
	}
	return nil
}

// Prune removes backups that are done with, but for the newest keep of them.
func Prune(list []*Backup, keep int) error {
	var failed error
	for _, b := range list {
		if b.State == Started || b.State == Replaced {
			continue
		}
		if keep--; keep < 0 {
			failed = errors.Join(failed, os.RemoveAll(b.dir))
		}
	}
	return failed
}

// readme tells a person how to restore without pmk-sched.
func (b *Backup) readme() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Before the kube-scheduler of this node was replaced, these files were kept here.\n\n"+
		"`pmk-sched restore` brings them back. By hand, as root (one line a file; install and mv, so that the file is\n"+
		"never missing and never half-written):\n\n")
	for _, f := range b.Files {
		aside := path.Join(path.Dir(path.Dir(f.Path)), ".restored")
		fmt.Fprintf(&s, "  install -m %04o -o %d -g %d %s/original/%s %s && mv %s %s\n", f.Mode, f.UID, f.GID, b.Dir(), f.Name, aside, aside, f.Path)
	}
	if b.SingleFile {
		fmt.Fprintf(&s, "\nThe kubelet watches that file itself. When it is renamed over, the kubelet stops every container of the pod for up\n"+
			"to a minute, the API server too; they come back by themselves.\n")
	}
	fmt.Fprintf(&s, "\nThen remove %s.\nCopies of the scheduler's kubeconfig and configuration are in the folder copies, for reference only.\n"+
		"SHA-256 of the originals:\n", b.ConfigFile)
	for _, f := range b.Files {
		fmt.Fprintf(&s, "  %s  %s\n", f.Original, f.Name)
	}
	return s.String()
}
