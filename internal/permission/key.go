package permission

import (
	"fmt"
	"strings"

	"weir/internal/strict"
)

const maxKey = 128 // bytes

// KeyError says why a name is none for a store, an entry or a secret of the vault.
type KeyError struct {
	Key string // as it was given: quote it before it is shown
	Why string
}

// Error quotes the key so that nothing in it reaches a terminal or a log as it is.
func (e *KeyError) Error() string { return fmt.Sprintf("%s is no key: %s", strict.Quote(e.Key), e.Why) }

// CheckKey checks the name of a store, an entry or a secret (P1). Nothing is rewritten to fit: what is refused here has no file.
func CheckKey(key string) error {
	bad := func(why string) error { return &KeyError{key, why} }
	switch {
	case key == "":
		return bad("it is empty")
	case len(key) > maxKey:
		return bad(fmt.Sprintf("it has more than %d characters", maxKey))
	case strings.ContainsFunc(key, func(r rune) bool { return !keyRune(r) }):
		return bad("it may have only A-Z, a-z, 0-9, dots, hyphens and underscores")
	case key[0] == '.':
		return bad("it begins with a dot")
	}
	base, _, _ := strings.Cut(key, ".")
	if reserved(strings.ToUpper(base)) {
		return bad(strings.ToUpper(base) + " is the name of a device on Windows")
	}
	return nil
}

func keyRune(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func reserved(base string) bool {
	switch base {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(base) == 4 && (base[:3] == "COM" || base[:3] == "LPT") && base[3] >= '1' && base[3] <= '9'
}
