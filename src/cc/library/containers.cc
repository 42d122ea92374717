/*
 * The functions of libstdc++ that link, unlink and balance the nodes of lists and trees. libstdc++ has
 * them in its shared library, where their accesses cannot be seen; programs that `symbiosis c++` links
 * use these instead, which are instrumented like the program itself. Weak, in case that libstdc++ is
 * linked statically and brings its own; hidden, so that other libraries keep theirs.
 */

#define REPLACES(name) __asm__(name) __attribute__((weak, visibility("hidden")))

namespace symbiosis {

/* `std::__detail::_List_node_base`. */
struct ListNode {
    ListNode *next;
    ListNode *previous;
};

/* `std::_Rb_tree_node_base`. Of the header, the parent is the root, and left and right are the outermost
 * nodes. */
struct TreeNode {
    int colour;
    TreeNode *parent;
    TreeNode *left;
    TreeNode *right;
};

enum { RED, BLACK };

using Link = TreeNode *TreeNode::*;

static Link opposite(Link side) { return side == &TreeNode::left ? &TreeNode::right : &TreeNode::left; }

static bool is_black(const TreeNode *node) { return node == nullptr || node->colour == BLACK; }

/* Puts `replacement`, which may be null, where `node` hangs. */
static void replace(TreeNode *node, TreeNode *replacement, TreeNode &header)
{
    TreeNode *parent = node->parent;
    if (replacement != nullptr)
        replacement->parent = parent;
    if (header.parent == node)
        header.parent = replacement;
    else if (parent->left == node)
        parent->left = replacement;
    else
        parent->right = replacement;
}

/* Turns a node down to one side; its child on the other side takes its place. */
static void rotate(TreeNode *node, Link side, TreeNode &header)
{
    Link other = opposite(side);
    TreeNode *child = node->*other;
    TreeNode *inner = child->*side;
    node->*other = inner;
    if (inner != nullptr)
        inner->parent = node;
    replace(node, child, header);
    child->*side = node;
    node->parent = child;
}

static TreeNode *outermost(TreeNode *node, Link side)
{
    while (node->*side != nullptr)
        node = node->*side;
    return node;
}

/* The next node to one side in the order of the tree; behind the last one, the header. */
static TreeNode *neighbour(TreeNode *node, Link side)
{
    if (node->*side != nullptr)
        return outermost(node->*side, opposite(side));
    TreeNode *parent = node->parent;
    while (node == parent->*side) {
        node = parent;
        parent = parent->parent;
    }
    /* The root is the only node of the tree when the header is reached from both sides. */
    return node->*side != parent ? parent : node;
}

static TreeNode *predecessor(TreeNode *node)
{
    bool is_header = node->colour == RED && node->parent->parent == node;
    return is_header ? node->right : neighbour(node, &TreeNode::left);
}

static void balance_inserted(TreeNode *node, TreeNode &header)
{
    while (node != header.parent && node->parent->colour == RED) {
        TreeNode *parent = node->parent;
        TreeNode *above = parent->parent;
        Link side = above->left == parent ? &TreeNode::left : &TreeNode::right;
        TreeNode *uncle = above->*opposite(side);
        if (!is_black(uncle)) {
            parent->colour = BLACK;
            uncle->colour = BLACK;
            above->colour = RED;
            node = above;
            continue;
        }
        if (parent->*opposite(side) == node) {
            node = parent;
            rotate(node, side, header);
            parent = node->parent;
        }
        parent->colour = BLACK;
        above->colour = RED;
        rotate(above, opposite(side), header);
    }
    header.parent->colour = BLACK;
}

/* A black node is missing on the way to `node`, which may be null and hangs below `parent`. */
static void balance_erased(TreeNode *node, TreeNode *parent, TreeNode &header)
{
    while (node != header.parent && is_black(node)) {
        Link side = parent->left == node ? &TreeNode::left : &TreeNode::right;
        Link other = opposite(side);
        TreeNode *sibling = parent->*other;
        if (sibling->colour == RED) {
            sibling->colour = BLACK;
            parent->colour = RED;
            rotate(parent, side, header);
            sibling = parent->*other;
        }
        if (is_black(sibling->left) && is_black(sibling->right)) {
            sibling->colour = RED;
            node = parent;
            parent = parent->parent;
            continue;
        }
        if (is_black(sibling->*other)) {
            (sibling->*side)->colour = BLACK;
            sibling->colour = RED;
            rotate(sibling, other, header);
            sibling = parent->*other;
        }
        sibling->colour = parent->colour;
        parent->colour = BLACK;
        if (sibling->*other != nullptr)
            (sibling->*other)->colour = BLACK;
        rotate(parent, side, header);
        break;
    }
    if (node != nullptr)
        node->colour = BLACK;
}

} // namespace symbiosis

using namespace symbiosis;

void hook(ListNode *node, ListNode *before) REPLACES("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void hook(ListNode *node, ListNode *before)
{
    node->next = before;
    node->previous = before->previous;
    before->previous->next = node;
    before->previous = node;
}

void unhook(ListNode *node) REPLACES("_ZNSt8__detail15_List_node_base9_M_unhookEv");
void unhook(ListNode *node)
{
    ListNode *next = node->next, *previous = node->previous;
    previous->next = next;
    next->previous = previous;
}

/* Moves the nodes from `first` up to but not including `last` before `to`. */
void transfer(ListNode *to, ListNode *first, ListNode *last)
    REPLACES("_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_");
void transfer(ListNode *to, ListNode *first, ListNode *last)
{
    if (to == last)
        return;
    ListNode *end = last->previous, *before_first = first->previous;
    end->next = to;
    before_first->next = last;
    ListNode *before_to = to->previous;
    before_to->next = first;
    to->previous = end;
    last->previous = before_first;
    first->previous = before_to;
}

void turn_round(ListNode *head) REPLACES("_ZNSt8__detail15_List_node_base10_M_reverseEv");
void turn_round(ListNode *head)
{
    ListNode *node = head;
    do {
        ListNode *next = node->next;
        node->next = node->previous;
        node->previous = next;
        node = next;
    } while (node != head);
}

/* Gives `head` the nodes that hung at `other`, whose ends were these; an empty list points to itself. */
static void hang(ListNode *head, ListNode *other, ListNode ends)
{
    if (ends.next == other) {
        head->next = head->previous = head;
        return;
    }
    head->next = ends.next;
    head->previous = ends.previous;
    ends.next->previous = head;
    ends.previous->next = head;
}

void exchange(ListNode &x, ListNode &y) REPLACES("_ZNSt8__detail15_List_node_base4swapERS0_S1_");
void exchange(ListNode &x, ListNode &y)
{
    ListNode of_x = x, of_y = y;
    hang(&x, &y, of_y);
    hang(&y, &x, of_x);
}

TreeNode *increment(TreeNode *node) REPLACES("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base");
TreeNode *increment(TreeNode *node) { return neighbour(node, &TreeNode::right); }

TreeNode *increment_constant(TreeNode *node) REPLACES("_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base");
TreeNode *increment_constant(TreeNode *node) { return neighbour(node, &TreeNode::right); }

TreeNode *decrement(TreeNode *node) REPLACES("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base");
TreeNode *decrement(TreeNode *node) { return predecessor(node); }

TreeNode *decrement_constant(TreeNode *node) REPLACES("_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base");
TreeNode *decrement_constant(TreeNode *node) { return predecessor(node); }

/* Makes `node` the left or right child of `parent`, which may be the header of an empty tree. */
void insert(bool left, TreeNode *node, TreeNode *parent, TreeNode &header)
    REPLACES("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_");
void insert(bool left, TreeNode *node, TreeNode *parent, TreeNode &header)
{
    Link side = left ? &TreeNode::left : &TreeNode::right;
    node->parent = parent;
    node->left = nullptr;
    node->right = nullptr;
    node->colour = RED;
    if (parent == &header) {
        header.parent = header.left = header.right = node;
    } else {
        if (header.*side == parent)
            header.*side = node;
        parent->*side = node;
    }
    balance_inserted(node, header);
}

/* Takes `node` out of the tree, and returns it. */
TreeNode *erase(TreeNode *node, TreeNode &header)
    REPLACES("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_");
TreeNode *erase(TreeNode *node, TreeNode &header)
{
    TreeNode *child, *parent;
    int removed;
    if (node->left != nullptr && node->right != nullptr) {
        /* The successor takes the node's place and colour. */
        TreeNode *next = outermost(node->right, &TreeNode::left);
        child = next->right;
        removed = next->colour;
        node->left->parent = next;
        next->left = node->left;
        if (next == node->right) {
            parent = next;
        } else {
            parent = next->parent;
            if (child != nullptr)
                child->parent = parent;
            parent->left = child;
            next->right = node->right;
            node->right->parent = next;
        }
        replace(node, next, header);
        next->colour = node->colour;
        node->colour = removed;
    } else {
        child = node->left == nullptr ? node->right : node->left;
        parent = node->parent;
        removed = node->colour;
        replace(node, child, header);
        if (header.left == node)
            header.left = child == nullptr ? parent : outermost(child, &TreeNode::left);
        if (header.right == node)
            header.right = child == nullptr ? parent : outermost(child, &TreeNode::right);
    }
    if (removed == BLACK)
        balance_erased(child, parent, header);
    return node;
}
