// Package trial puts every mechanism to use for a moment, for weir doctor --load. It
// owns a throwaway sensor and a probe that connects nowhere. It never touches a
// sensor that runs, and leaves nothing behind.
package trial
