// Package prompt is the terminal in which a person sees containers and questions, and
// answers. It shows nothing of a container that a terminal would obey (B51), answers
// only what was selected and confirmed, and lets nobody approve what was not on the
// screen in full.
//
// On the terminal of a guarded command it writes one line for what waits, and takes
// no answer there: the command reads that terminal, too.
//
// It puts the terminal back as it was, however it ends. It decides nothing.
package prompt
