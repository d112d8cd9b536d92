package build

type cache struct{ dir string }
