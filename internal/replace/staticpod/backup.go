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

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// StateDir is the directory on the node that holds the lock and the backups.
const StateDir = "/var/lib/pmk-sched"

// backupsDir holds one directory per backup, named by time.
const backupsDir = StateDir + "/backups"

// recordName is the name of the file with [Content.Record] in a backup's directory.
const recordName = "record.json"

// State is a replacement's state.
type State string

// States of a backup.
const (
	// Started: a run is in progress, or was killed.
	Started State = "started"
	// Replaced: the new scheduler runs and was verified.
	Replaced State = "replaced"
	// Undone: the run failed and was reverted.
	Undone State = "undone"
	// Restored: the original manifest is restored.
	Restored State = "restored"
	// Superseded: a later run took over.
	Superseded State = "superseded"
)

// Backup is one directory under the backups directory: the state before a run, and the run's
// journal.
type Backup struct {
	// ID is the directory's name. IDs sort by time.
	ID    string `json:"id"`
	State State  `json:"state"`
	// Step is the step that began last.
	Step    string    `json:"step"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`

	Layout string `json:"layout"`
	// Node is the node's name, Pod the name of its mirror pod.
	Node      string `json:"node"`
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	Container string `json:"container"`
	// SingleFile and HoldsAPI depend on the layout: see [Swapper] and [Watch].
	SingleFile bool `json:"singleFile"`
	HoldsAPI   bool `json:"holdsAPI"`
	// Elects is set if the scheduler uses leader election.
	Elects bool `json:"elects"`
	// Alone is as in [Watch], Pinned as in [Want].
	Alone  bool `json:"alone"`
	Pinned bool `json:"pinned"`
	// Image and Replacement are the requested values.
	Image       string `json:"image"`
	Replacement string `json:"replacement"`
	// RequireSignature is the public key, in PEM, that must have signed the image, in a backup without
	// a record.
	RequireSignature string `json:"requireSignature,omitempty"`
	// Rules is set if a ClusterRole for plugins was applied.
	Rules bool `json:"rules"`
	// ConfigDir and ConfigFile are the paths to which the configuration was written.
	ConfigDir  string `json:"configDir,omitempty"`
	ConfigFile string `json:"configFile,omitempty"`
	ConfigHash string `json:"configHash,omitempty"`
	// Files are the changed files, the manifest first.
	Files []Saved `json:"files"`
	// Copies are kept for reference: the scheduler's kubeconfig and configuration.
	Copies []Saved `json:"copies,omitempty"`

	dir   string
	files Files
}

// Saved is a file in a backup.
type Saved struct {
	// Path is the path on the node.
	Path string      `json:"path"`
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	// Name is the file name in the directories original, previous and written.
	Name string `json:"name"`
	// Original, Previous and Written are hashes. Restore writes the original file. A failed run
	// restores the previous file, the last one that is known to work. This run writes the written
	// file.
	Original string `json:"original"`
	Previous string `json:"previous,omitempty"`
	Written  string `json:"written,omitempty"`
	// Edited is set if the file was edited after an earlier replacement; the original does not contain
	// that edit.
	Edited bool `json:"edited,omitempty"`
}

// Manifest returns the manifest's entry.
func (b *Backup) Manifest() *Saved { return &b.Files[0] }

// File returns the entry for the file at a path, or nil if it does not exist.
func (b *Backup) File(path string) *Saved {
	for i := range b.Files {
		if b.Files[i].Path == path {
			return &b.Files[i]
		}
	}
	return nil
}

// Dir returns the backup's directory on the node.
func (b *Backup) Dir() string { return path.Join(backupsDir, b.ID) }

// Content is the data that Create copies into a backup.
type Content struct {
	// Original and Previous hold one file for each of Backup.Files.
	Original, Previous []*File
	// Copies holds one file for each of Backup.Copies.
	Copies []*File
	// Written holds the new content for each of Backup.Files.
	Written [][]byte
	// Record describes the replacement, to plan it again. It is not in the journal, which restores
	// the node whatever the record has.
	Record []byte
}

// Create writes a backup. The journal is written last, so that a directory with a journal is
// complete.
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
		err := errors.Join(b.keep("original", f.Name, content.Original[i].Data), b.keep("previous", f.Name, old.Data),
			b.keep("written", f.Name, content.Written[i]))
		if err != nil {
			return err
		}
	}
	for i := range b.Copies {
		c, file := &b.Copies[i], content.Copies[i]
		c.Name, c.Mode, c.UID, c.GID, c.Original = fmt.Sprintf("%d-%s", i, path.Base(c.Path)), file.Mode, file.UID, file.GID,
			Hash(file.Data)
		if err := b.keep("copies", c.Name, file.Data); err != nil {
			return err
		}
	}
	err := errors.Join(b.keep("", recordName, content.Record), b.keep("", "README", []byte(b.readme())))
	if err != nil {
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
		return problem.NodeFile("make", backupsDir, err)
	}
	stamp := b.Created.Format("20060102T150405.000000Z")
	b.ID, b.dir = stamp, filepath.Join(parent, stamp)
	return problem.NodeFile("make", b.Dir(), os.Mkdir(b.dir, 0o700))
}

func (b *Backup) keep(folder, name string, data []byte) error {
	dir := filepath.Join(b.dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return problem.NodeFile("write", path.Join(b.Dir(), folder), err)
	}
	part, err := writePart(dir, "."+name+"-*", &File{Data: data, Mode: 0o600, UID: os.Geteuid(), GID: os.Getegid()})
	if err == nil {
		err = os.Rename(part, filepath.Join(dir, name))
	}
	if err == nil {
		err = syncDir(dir)
	}
	return problem.NodeFile("write", path.Join(b.Dir(), folder, name), err)
}

// Note records in the journal the step that begins, or the run's result.
func (b *Backup) Note(step string, state State) error {
	b.Step, b.State, b.Updated = step, state, time.Now().UTC()
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", b.Dir(), err)
	}
	return b.keep("", "journal.json", append(text, '\n'))
}

// Copies of a file in a backup.
const (
	OriginalCopy = "original"
	PreviousCopy = "previous"
	WrittenCopy  = "written"
)

// Load reads a copy. It fails if the copy's hash is not the one in the journal.
func (b *Backup) Load(s *Saved, copy string) (*File, error) {
	at := path.Join(b.Dir(), copy, s.Name)
	data, err := os.ReadFile(filepath.Join(b.dir, copy, s.Name))
	if err != nil {
		return nil, problem.NodeFile("read", at, err)
	}
	want := map[string]string{OriginalCopy: s.Original, PreviousCopy: s.Previous, WrittenCopy: s.Written}[copy]
	if Hash(data) != want {
		return nil, problem.Errorf("inspect the directory "+b.Dir(), "read %s: its hash differs from the journal", at)
	}
	return &File{Data: data, Mode: s.Mode, UID: s.UID, GID: s.GID}, nil
}

// Record returns [Content.Record]. Backups of older versions have none.
func (b *Backup) Record() ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(b.dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, problem.NodeFile("read", path.Join(b.Dir(), recordName), err)
}

// Backups returns a node's backups, the newest first. It skips directories without a journal: their
// run was killed before it changed anything.
func Backups(files Files) ([]*Backup, error) {
	parent, err := files.Resolve(backupsDir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.NodeFile("read", backupsDir, err)
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
			err = b.decode(text)
		}
		if err != nil {
			return nil, fmt.Errorf("read journal of backup %s: %w", path.Join(backupsDir, entry.Name()), err)
		}
		b.ID, b.dir, b.files = entry.Name(), dir, files
		list = append(list, b)
	}
	return list, nil
}

// decode reads a journal.
func (b *Backup) decode(text []byte) error {
	if err := json.Unmarshal(text, b); err != nil {
		return err
	}
	if len(b.Files) == 0 {
		return errors.New("it lists no file")
	}
	for _, f := range b.Files {
		if f.Name == "" || f.Name != filepath.Base(f.Name) || f.Name == ".." {
			return fmt.Errorf("the name %q of a file is not one in the backup's directory", f.Name)
		}
	}
	return nil
}

// readme describes how to restore without pmk-sched.
func (b *Backup) readme() string {
	var s strings.Builder
	fmt.Fprintf(&s, "The files of this node's kube-scheduler from before it was replaced.\n\n"+
		"`pmk-sched restore` restores them. To restore them by hand, run as root (install and mv, so that a file is\n"+
		"never missing or incomplete):\n\n")
	for _, f := range b.Files {
		aside := path.Join(path.Dir(path.Dir(f.Path)), ".restored")
		fmt.Fprintf(&s, "  install -m %04o -o %d -g %d %s/original/%s %s && mv %s %s\n", f.Mode, f.UID, f.GID, b.Dir(),
			f.Name, aside, aside, f.Path)
	}
	if b.SingleFile {
		fmt.Fprintf(&s,
			"\nThe kubelet watches the file itself. When it is replaced, the kubelet stops all containers of the pod for up\n"+
				"to a minute, including the API server, and then starts them again.\n")
	}
	fmt.Fprintf(&s,
		"\nThen remove %s.\nThe directory copies has the scheduler's kubeconfig and configuration, for reference only.\n"+
			"SHA-256 of the originals:\n", b.ConfigFile)
	for _, f := range b.Files {
		fmt.Fprintf(&s, "  %s  %s\n", f.Original, f.Name)
	}
	return s.String()
}
