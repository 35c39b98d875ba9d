// Package question asks people: durable questions that are bound to what was asked, have
// a deadline, and whose approval is used once (G15, G16, G17). What is not stored and
// logged is a denial. It never says whether a person has to be asked, opens nothing, and
// shows nothing to anybody: announcements are made from the events that are written.
package question
