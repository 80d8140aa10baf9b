/* The nodes of a captured graph. A node lists the nodes that it follows. */
#include "phantom.h"

#include <stdlib.h>
#include <string.h>

struct phantom_node *phantom_graph_add(struct phantom_graph *graph, struct phantom_node *const *after, size_t count) {
    if (graph->count == graph->room) {
        size_t room = graph->room ? 2 * graph->room : 64;
        struct phantom_node **grown = realloc(graph->nodes, room * sizeof *grown);
        if (!grown)
            return NULL;
        graph->nodes = grown;
        graph->room = room;
    }
    struct phantom_node *node = malloc(sizeof *node + count * sizeof *after);
    if (!node)
        return NULL;
    node->count = count;
    if (count)
        memcpy(node->after, after, count * sizeof *after);
    return graph->nodes[graph->count++] = node;
}
